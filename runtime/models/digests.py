"""What a model computes, as a digest: a model that was changed has another one.

Neither a name nor a configuration tells a model from what it was before a layer was replaced, wrapped, hooked or given
other weights. Here every module is looked at: its class and code, its plain attributes, its hooks, its tensors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import torch

from ...theory.imports import optional

_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
_OF_EVERY_MODULE = frozenset(vars(torch.nn.Module())) - set(_HOOKS)
"""Parameters, buffers and children are looked at by themselves; what else every module has computes nothing."""
_TORCH = str(Path(torch.__file__).parent)
_SAMPLE = 256
"""Numbers that are looked at in a tensor, evenly spread: reading all would cost more than passes of the model do."""


def structure(model: Any) -> str:
    """Digest of everything but the numbers in the tensors, and of where these lie.

    It costs milliseconds, so that it can be compared before every call. Not for another process.
    """
    return _digest([*_modules(model), *((name, tensor.data_ptr()) for name, tensor in _tensors(model))])


def content(model: Any) -> str:
    """Digest of everything, of the tensors a sample of their numbers; the same in every process, save for hooks.

    `identity` reads all numbers, for what must not be told of another model; this one is for tests that depend on how
    the model computes, and is cheap enough to be asked whenever a decoder is made.

    >>> from draftcert.runtime.models import load_model
    >>> model = load_model().model
    >>> before = content(model)
    >>> hook = model.lm_head.register_forward_hook(print)
    >>> content(model) == before
    False
    >>> hook.remove()
    >>> content(model) == before
    True
    """
    return _digest([*_modules(model), *((name, _numbers(tensor)) for name, tensor in _tensors(model))])


def code_of(kind: type) -> dict[tuple[str, str], str]:
    """All that runs when a module of this class is called, outside of torch: digests of functions by file and name.

    Its `__call__` and `forward`, what they are wrapped in, and every function, method or property that the code of any
    of these names. Two classes with the same digests, wherever they come from, compute the same with the same
    attributes.

    >>> from transformers.models.llama.modeling_llama import LlamaMLP
    >>> from transformers.models.mistral.modeling_mistral import MistralMLP
    >>> sorted(code_of(LlamaMLP).values()) == sorted(code_of(MistralMLP).values())
    True
    """
    found: dict[tuple[str, str], str] = {}
    methods = {name: value for base in reversed(kind.__mro__) for name, value in vars(base).items()}
    todo = [getattr(kind, name) for name in ("__call__", "forward")]
    while todo:
        function = todo.pop()
        if isinstance(function, property):
            function = function.fget
        if not isinstance(function, FunctionType):
            continue
        code = function.__code__
        place = code.co_filename, code.co_qualname
        if found.get(place) == (digest := _instructions(code)) or code.co_filename.startswith(_TORCH):
            continue
        found[place] = digest
        todo.append(getattr(function, "__wrapped__", None))
        todo += [named.get(name) for name in code.co_names for named in (methods, function.__globals__)]
    return found


def _digest(facts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(facts, default=_plain, skipkeys=True).encode()).hexdigest()


def _modules(model: Any) -> Iterator[Any]:
    with optional("hf"):
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    yield model.config.to_json_string(use_diff=False)
    yield ALL_ATTENTION_FUNCTIONS.get(model.config._attn_implementation)
    yield [getattr(torch.nn.modules.module, f"_global{hooks}") for hooks in _HOOKS]
    for name, module in model.named_modules():
        own = {key: value for key, value in vars(module).items() if key not in _OF_EVERY_MODULE and value is not None}
        yield name, type(module), own
    for kind in dict.fromkeys(map(type, model.modules())):
        yield sorted(code_of(kind).values())
    for name, tensor in _tensors(model):
        yield name, tensor.dtype, tensor.device, tensor.shape, tensor.stride()


def _tensors(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    yield from model.named_parameters(remove_duplicate=False)
    yield from model.named_buffers(remove_duplicate=False)


def _numbers(tensor: torch.Tensor) -> list[float]:
    flat = tensor.detach().flatten()
    return flat[:: max(1, len(flat) // _SAMPLE)].tolist()


def _plain(value: Any) -> Any:
    """What JSON does not know, as what it does; an object of unknown kind counts as this very object."""
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, torch.Tensor):
        return _numbers(value)
    if isinstance(value, (torch.dtype, torch.device, torch.Size)):
        return str(value)
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    if hasattr(value, "to_json_string"):  # the model's configuration, or a part of it
        return type(value)
    if isinstance(value, FunctionType) and not value.__closure__:
        return value.__qualname__, _instructions(value.__code__)
    return type(value), id(value)


@cache
def _instructions(code: CodeType) -> str:
    """Digest of what it does, the same in every process; texts of several lines are taken for documentation."""
    constants = [_constant(value) for value in code.co_consts if not (isinstance(value, str) and "\n" in value)]
    return hashlib.sha256(code.co_code + repr((constants, code.co_names)).encode()).hexdigest()


def _constant(value: Any) -> str:
    if isinstance(value, CodeType):
        return _instructions(value)
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)
