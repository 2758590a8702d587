"""Whether draft trees are evaluated right on the model at hand: small random trees against the plain model.

What masks, positions and caches a model takes, and what it makes of them, is nowhere declared, so it is tried: ragged
prompts, trees behind them, paths that are committed, trees again, all through the very engine that is to decode, and
every node's logits are compared with the plain model's on that node's path (`plain`).

Some models compute differently from some length on: attention that sees only a window or a chunk of the text, rotations
that are scaled beyond what the model was trained for. Each such length is tried before the first text gets there.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from ...support.cache import cached
from ...theory.errors import DraftcertError
from ..models.identity import content
from .forward import TreeForward
from .plain import distance, plain_logits, tolerance
from .tree import Tree

_LENGTH = re.compile(r"window|chunk|local|original_max_position")
_PROMPTS, _NODES = (7, 4), 6
"""Tokens of the short prompts, and nodes of a tree: enough for ragged batches and paths with gaps."""



def lengths_of_change(model: Any) -> list[int]:
    """Lengths from which on the model may compute differently: whatever its configuration or a module calls so."""
    own = (vars(module) for module in model.modules())
    named = (pair for values in (model.config.get_text_config(decoder=True).to_dict(), *own) for pair in _numbers(values))
    return sorted({value for name, value in named if _LENGTH.search(name) and value > 3})


def prove(model: Any, engine: Callable[[], TreeForward], reach: int) -> list[int]:
    """Check the engine on short texts and at each length up to `reach` from which on the model may differ.

    What was found right is kept in the user's cache folder by the contents of the model and of this package. Returns
    the lengths that were tried.

    Raises:
        DraftcertError: the model, its attention and the first node whose logits are not those of the plain model.
    """
    places = [0, *(length for length in lengths_of_change(model) if length <= reach)]
    identity = {
        "model": content(model),
        "class": type(model).__name__,
        "engine": [type(engine().few_rows).__name__, engine().fixed_shapes],
        "code": _code(),
        "versions": [torch.__version__, transformers.__version__],
    }
    for place in places:

        def test(place: int = place) -> bool:
            _test(model, engine(), place)
            return True

        cached("self-tests", identity | {"length": place}, bool, test)
    return places


def _code() -> list[str]:
    """The sources that a verdict depends on."""
    here = Path(__file__).parent
    files = [*here.glob("*.py"), *(here.parent / "models").rglob("*.*")]
    return [file.read_text(encoding="utf-8") for file in sorted(files) if file.suffix in (".py", ".cpp", ".h")]


@dataclass(frozen=True)
class _Evaluated:
    """What the engine made of a text's last tokens: their logits, and in words what they were."""

    text: list[int]
    rows: torch.Tensor
    what: str


def _test(model: Any, forward: TreeForward, length: int) -> None:
    """Compare what the engine makes of a few trees, behind texts that cross `length`, with the plain model."""
    source = random.Random(length)
    tokens = _usual_tokens(model, forward.vocab_size, source)
    found = list(_evaluated(forward, length, tokens, source))
    texts = [each.text for each in found]
    whole = [text for text in texts if not any(len(text) < len(other) and other[: len(text)] == text for other in texts)]
    longest = max(map(len, whole))
    filled = [[*text, *source.choices(tokens, k=longest - len(text))] for text in whole]
    last = longest - min(len(each.text) - len(each.rows) for each in found)
    plain = plain_logits(model, filled, last)
    allowed = tolerance(model, filled[0], last)
    for each in found:
        text = next(number for number, text in enumerate(whole) if text[: len(each.text)] == each.text)
        end = last - (longest - len(each.text))
        off = distance(each.rows, plain[text, end - len(each.rows) : end])
        if not float(off.max()) <= allowed:
            where = len(each.text) - len(each.rows) + int(off.argmax())
            raise DraftcertError(
                f"{type(model).__name__} with {model.config._attn_implementation} attention cannot be decoded with "
                f"trees: {each.what}, at position {where}, has logits {float(off.max()):.2g} off the plain model's, "
                f"where rounding explains {allowed:.2g}"
            )


@torch.inference_mode()
def _evaluated(forward: TreeForward, length: int, tokens: Sequence[int], source: random.Random) -> Iterator[_Evaluated]:
    """Prompts, the trees behind them, a path that is committed, trees again, and one sequence when another has ended."""
    texts = [source.choices(tokens, k=size) for size in ([length - 2] if length else _PROMPTS)]
    cache = forward.new_cache([len(text) for text in texts], 3 * _NODES + length // 4)
    for text, row in zip(texts, forward.prefill(texts, cache), strict=True):
        yield _Evaluated(list(text), row, "the last token of a prompt")
    cache.lengths[:] = [len(text) for text in texts]
    for turn in ("first", "second", "third"):
        if turn == "third" and len(texts) > 1:
            cache.keep([1])
            del texts[0]
        trees = [_random_tree(tokens, source) for _ in texts]
        for row, (tree, logits) in enumerate(zip(trees, forward(trees, cache), strict=True)):
            for leaf in (node for node in range(len(tree)) if not tree.children[node]):
                path = tree.path(leaf)
                text = [*texts[row], *(tree.tokens[node] for node in path)]
                yield _Evaluated(text, logits[list(path)], f"a path to node {leaf} of the {turn} tree {tree.parents}")
            deepest = tree.path(max(range(len(tree)), key=lambda node: tree.depths[node]))
            cache.commit(row, deepest)
            texts[row].extend(tree.tokens[node] for node in deepest)
        if length and turn == "second":  # on to where the beginning of the text is out of sight
            tail = source.choices(tokens, k=length // 4 + 1)
            forward([Tree(tuple(tail), tuple(range(-1, len(tail) - 1)))], cache)
            cache.commit(0, range(len(tail)))
            texts[0].extend(tail)


def _random_tree(tokens: Sequence[int], source: random.Random) -> Tree:
    """Siblings carry different tokens, and the deepest path leaves nodes out."""
    drawn = source.sample(tokens, k=_NODES)
    return Tree(tuple(drawn), (-1, 0, 0, *(source.randrange(node - 3, node) for node in range(3, _NODES))))


def _usual_tokens(model: Any, vocab_size: int, source: random.Random) -> list[int]:
    """Some token ids without those that the configuration names, which may stand for pictures or for padding."""
    special = {value for name, value in _numbers(model.config.to_dict()) if name.endswith(("token_id", "token_index"))}
    return [token for token in source.sample(range(vocab_size), min(vocab_size, 100)) if token not in special]


def _numbers(values: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The whole numbers in a configuration and its parts, with their names."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _numbers(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            yield name, value
