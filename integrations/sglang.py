"""Draft trees for SGLang, by its plug-in point for speculative algorithms. Not run here: it needs a GPU.

`--speculative-algorithm DRAFTCERT --speculative-num-draft-tokens 16` decodes with our drafters: SGLang finds `register`
by the entry point `sglang.srt.plugins` of this package. It is written, and tested against a stand-in, after what SGLang
0.5.23 publishes: its worker for n-grams takes trees out of a corpus on the host, and here that corpus is our drafters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ..runtime.trees.tree import Tree
from ..theory.imports import optional
from .texts import TextDrafter

_WHOLE = 2**31 - 1
"""More tokens than a text has: the worker hands out whole texts, not their ends."""


class Corpus:
    """What SGLang's worker for n-grams asks for trees of exactly `nodes` nodes, its `NgramCorpus`."""

    def __init__(self, nodes: int, drafter: Any = "recycling+lookup"):
        self.nodes, self._drafter = nodes, drafter
        self.reset()

    def reset(self) -> None:
        """Forget all that was learned."""
        self._texts = TextDrafter(self._drafter)

    def batch_get(
        self, req_ids: Sequence[str], batch_tokens: Sequence[list[int]], total_lens: Sequence[int]
    ) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Tokens `[requests * nodes]`, and for every node which nodes it sees `[requests * nodes * nodes]`."""
        trees = [_filled(tree, self.nodes) for tree in self._texts.trees(batch_tokens, self.nodes, self.nodes - 1)]
        tokens = numpy.array([tree.tokens for tree in trees], dtype=numpy.int64)
        return tokens.reshape(-1), numpy.concatenate([tree.ancestor_mask().numpy().reshape(-1) for tree in trees])

    def batch_put(self, *arguments: Any) -> None:
        """Nothing: what is added to a text is learned when it comes again, and one that does not is forgotten."""

    synchronize = erase_match_state = batch_put


def _filled(tree: Tree, nodes: int) -> Tree:
    """The tree with as many nodes as SGLang counts on; those added hang one below the other under the last."""
    chain = range(len(tree) - 1, nodes - 1)
    return Tree((*tree.tokens, *[0] * len(chain)), (*tree.parents, *chain))


def register() -> None:
    """Make SGLang know the algorithm DRAFTCERT; a `DraftcertError` where there is no SGLang."""
    with optional("sglang"):
        from sglang.srt.speculative.spec_info import SpeculativeAlgorithm  # pyright: ignore[reportMissingImports]
        from sglang.srt.speculative.spec_registry import CustomSpecAlgo  # pyright: ignore[reportMissingImports]

    class Trees(CustomSpecAlgo):
        """Treated as n-grams are, whose worker and verification it uses."""

        is_ngram = staticmethod(lambda: True)
        has_draft_kv = staticmethod(lambda: False)
        handle_server_args = staticmethod(SpeculativeAlgorithm.NGRAM.handle_server_args)

    @SpeculativeAlgorithm.register("DRAFTCERT", supports_overlap=True, spec_class=Trees)
    def worker(server_args: Any) -> type:  # pyright: ignore[reportUnusedFunction]
        with optional("sglang"):
            from sglang.srt.speculative.ngram_worker import NGRAMWorker  # pyright: ignore[reportMissingImports]

        class TreeWorker(NGRAMWorker):
            def __init__(self, *arguments: Any, **options: Any):
                super().__init__(*arguments, **options)
                self.ngram_corpus, self.max_trie_depth = Corpus(self.draft_token_num), _WHOLE

        return TreeWorker
