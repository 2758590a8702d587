"""Whether draft trees are evaluated right on the model at hand: small random trees against the plain model.

What masks, positions and caches a model takes, and what it makes of them, is nowhere declared, so it is tried: ragged
prompts, trees behind them, paths that are committed, trees again, all through the very engine that is to decode, and
every node's logits are compared with the plain model's on that node's path (`plain`).

Some models compute differently from some length on: attention that sees only a window or a chunk of the text, rotations
that are scaled beyond what the model was trained for. Each such length is tried before the first text gets there.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch

from ...support.cache import cached
from ...theory.errors import DraftcertError
from ..models.digests import content, structure
from ..models.evaluating import evaluating
from ..models.layers.bindings import library
from .forward import TreeForward
from .plain import distance, negligible, plain_logits, require_causal, tolerance
from .tree import Tree

_LENGTH = re.compile(r"(window|chunk|local|original_max_position)(?!.*(layer|expert|head))")
_PROMPTS, _NODES, _FEWER = (7, 4), 6, 4
"""Tokens of the short prompts; nodes of a tree, enough for branches and paths with gaps, and behind long texts."""


def lengths_of_change(model: Any) -> list[int]:
    """Lengths from which on the model may compute differently: whatever its configuration or a module calls so."""
    own = (vars(module) for module in model.modules())
    named = (
        pair for values in (model.config.get_text_config(decoder=True).to_dict(), *own) for pair in _numbers(values)
    )
    return sorted({value for name, value in named if _LENGTH.search(name) and value > 3})


_known: WeakKeyDictionary[Any, set[tuple[Any, ...]]] = WeakKeyDictionary()
"""What was found right of the models of this process, by their `structure`."""


def self_test(
    model: Any, reach: int = 0, fast: bool = True, fixed_shapes: bool = False, now: str | None = None
) -> list[int]:
    """Try the engine on short texts, and at each length up to `reach` from which on the model may differ.

    `fast`, `fixed_shapes`: as of `TreeForward`. `now`: the model's `structure`, if known. What was found right
    is kept in the user's cache folder by the contents of the model and of this package. Returns the lengths that were
    tried, 0 for the short texts.

    Raises:
        DraftcertError: the model, its attention and the first node whose logits are not those of the plain model.

    >>> from draftcert.runtime.models import load_model
    >>> model = load_model().model
    >>> self_test(model, reach=1000)
    [0]
    """
    now, kind = now or structure(model), (fast, fixed_shapes)
    lengths = [0, *(length for length in lengths_of_change(model) if length <= reach)]
    known = _known.setdefault(model, set())
    unknown = [length for length in lengths if (now, kind, length) not in known]
    if not unknown:
        return lengths
    identity = {
        "model": content(model),
        "class": f"{type(model).__module__}.{type(model).__qualname__}",
        "attention": model.config._attn_implementation,
        "engine": [*kind, library() is not None],
        "code": _code(),
        "versions": [torch.__version__, version("transformers")],
    }
    with evaluating(model):
        for length in unknown:

            def right(length: int = length) -> bool:
                _test(model, TreeForward(model, fast, fixed_shapes), length)
                return True

            cached("self-tests", identity | {"length": length}, bool, right)
            known.add((now, kind, length))
    return lengths


@cache
def _code() -> str:
    """Digest of the sources that a verdict depends on."""
    here = Path(__file__).parent
    files = [*here.glob("*.py"), *(here.parent / "models").rglob("*.*")]
    sources = (file.read_bytes() for file in sorted(files) if file.suffix in (".py", ".cpp", ".h"))
    return hashlib.sha256(b"".join(sources)).hexdigest()


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
    name = f"{type(model).__name__} with {model.config._attn_implementation} attention"
    if forward.vocab_size < 2:
        raise DraftcertError(f"{name} has a vocabulary of one token: there is nothing to draft")
    try:
        found = list(_evaluated(forward, length, tokens, source))
    except DraftcertError:
        raise
    except Exception as error:  # whatever a model's code does with what it did not expect
        said = (str(error).splitlines() or [""])[0]
        raise DraftcertError(f"{name} cannot evaluate trees: {type(error).__name__}: {said}") from error
    texts = [each.text for each in found]
    whole = [
        text for text in texts if not any(len(text) < len(other) and other[: len(text)] == text for other in texts)
    ]
    longest = max(map(len, whole))
    filled = [[*text, *source.choices(tokens, k=longest - len(text))] for text in whole]
    last = longest - min(len(each.text) - len(each.rows) for each in found)
    plain = plain_logits(model, filled, last)
    require_causal(model, filled[0], last)
    allowed_of = cache(lambda text: tolerance(model, filled[text], last))
    for each in found:
        text = next(number for number, text in enumerate(whole) if text[: len(each.text)] == each.text)
        end = last - (longest - len(each.text))
        rows = slice(end - len(each.rows), end)
        off = distance(each.rows, plain[text, rows])
        if float(off.max()) <= negligible(model, plain):
            continue
        allowed = allowed_of(text)[rows].to(off)
        for wrong in (off > allowed).nonzero()[:, 0].tolist():
            where = len(each.text) - len(each.rows) + wrong
            raise DraftcertError(
                f"{name} cannot be decoded with trees: {each.what}, at position {where}, has logits "
                f"{float(off[wrong]):.2g} off the plain model's, where rounding explains {float(allowed[wrong]):.2g}"
            )


@torch.inference_mode()
def _evaluated(forward: TreeForward, length: int, tokens: Sequence[int], source: random.Random) -> Iterator[_Evaluated]:
    """Prompts, trees behind them, a path that is committed, trees again, and one sequence when another has ended."""
    texts = [source.choices(tokens, k=size) for size in ([length - 2] if length else _PROMPTS)]
    nodes, tail = (_FEWER, source.choices(tokens, k=length // 4 + 1)) if length else (_NODES, [])
    states = forward.new_cache([len(text) for text in texts], 3 * nodes + len(tail))
    for text, row in zip(texts, forward.prefill(texts, states), strict=True):
        yield _Evaluated(list(text), row, "the last token of a prompt")
    states.lengths[:] = [len(text) for text in texts]
    for turn in ("first", "second", "third"):
        if len(texts[0]) + len(tail) + 2 * nodes > forward.max_positions:
            return
        if turn == "third" and len(texts) > 1:
            states.keep([1])
            del texts[0]
        trees = [_random_tree(nodes, tokens, source) for _ in texts]
        for row, (tree, logits) in enumerate(zip(trees, forward(trees, states), strict=True)):
            for leaf in (node for node in range(len(tree)) if not tree.children[node]):
                path = tree.path(leaf)
                text = [*texts[row], *(tree.tokens[node] for node in path)]
                yield _Evaluated(text, logits[list(path)], f"a path to node {leaf} of the {turn} tree {tree.parents}")
            deepest = tree.path(max(range(len(tree)), key=lambda node: tree.depths[node]))
            states.commit(row, deepest)
            texts[row].extend(tree.tokens[node] for node in deepest)
        if tail and turn == "second":  # on to where the beginning of the text is out of sight
            forward([Tree(tuple(tail), tuple(range(-1, len(tail) - 1)))], states)
            states.commit(0, range(len(tail)))
            texts[0].extend(tail)


def _random_tree(nodes: int, tokens: Sequence[int], source: random.Random) -> Tree:
    """The root has two children, so that no path can hold all nodes."""
    drawn = source.sample(tokens, k=min(nodes, len(tokens)))
    parents = (-1, 0, 0, *(source.randrange(node - 3, node) for node in range(3, nodes)))
    return Tree(tuple(drawn), parents[: len(drawn)])


def _usual_tokens(model: Any, vocab_size: int, source: random.Random) -> list[int]:
    """Some token ids, if there are others without those that the configuration names: pictures, padding."""
    special = {value for name, value in _numbers(model.config.to_dict()) if name.endswith(("token_id", "token_index"))}
    drawn = source.sample(range(vocab_size), min(vocab_size, 100))
    return [token for token in drawn if token not in special] or drawn


def _numbers(values: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The whole numbers in a configuration and its parts, with their names."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _numbers(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            yield name, value
