"""A model in evaluation mode for as long as somebody evaluates it, then as it was found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

_lock = Lock()
_in_use: WeakKeyDictionary[Any, tuple[int, list[Any]]] = WeakKeyDictionary()
"""For each model how many use it, and which of its modules were in training mode before the first of them."""


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """No dropout within the block; when no thread is in one any more, each module is in the mode it was in before.

    >>> import torch
    >>> model = torch.nn.Dropout()
    >>> with evaluating(model):
    ...     model.training
    False
    >>> model.training
    True
    """
    with _lock:
        users, trained = _in_use.get(model, (0, []))
        if not users:
            trained = [module for module in model.modules() if module.training]
            for module in trained:
                module.training = False
        _in_use[model] = users + 1, trained
    try:
        yield
    finally:
        with _lock:
            users, trained = _in_use.pop(model)
            if users > 1:
                _in_use[model] = users - 1, trained
            else:
                for module in trained:
                    module.training = True
