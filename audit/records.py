"""Read the folder of an audit: configuration, prompts, and the table of positions one column at a time."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..support.files import is_sealed, read_json, reading
from ..theory.errors import DraftcertError
from ..theory.imports import optional
from ..theory.numbers import shown
from .measure import Grid
from .prompts import Prompt
from .run import TRACE, Configuration, made_by

if TYPE_CHECKING:
    import pyarrow.parquet as pq


@dataclass(frozen=True)
class Audit:
    """A finished audit; columns are read from disk when asked for, so that memory stays small."""

    folder: Path
    configuration: Configuration
    prompts: tuple[Prompt, ...]

    @classmethod
    def open(cls, folder: str | Path) -> Audit:
        """The audit in `folder`.

        Raises:
            DraftcertError: no audit there, or one that is not finished.
        """
        folder = Path(folder)
        if not (folder / "audit.json").is_file():
            raise DraftcertError(f"no audit in {folder}: run draftcert audit --out {folder}")
        if not (folder / "positions.parquet").is_file():
            raise DraftcertError(f"the audit in {folder} is not finished: run the same command again, it goes on")
        if not is_sealed(folder / "positions.parquet"):
            raise DraftcertError(
                f"{folder / 'positions.parquet'} is damaged: run the same audit again, it is made again"
            )
        asked = read_json(folder / "audit.json")
        with reading(folder / "audit.json"):
            made = asked["made_by"]
            grid = asked["configuration"].pop("grid")
            names, candidates = tuple(grid["rules"]), tuple(grid["candidates"])
            configuration = Configuration(**asked["configuration"], grid=Grid(names, candidates, dict(grid["rules"])))
            prompts = tuple(
                Prompt(p["id"], p["category"], p["text"], p["messages"] and tuple(p["messages"]))
                for p in asked["prompts"]
            )
        if made != made_by():
            raise DraftcertError(f"the audit in {folder} is of another version, {shown(made)}: run it again elsewhere")
        found = cls(folder, configuration, prompts)
        measured = found._file.read(columns=["prompt", "prompt_id"]).group_by(["prompt", "prompt_id"]).aggregate([])
        ids = dict(enumerate(prompt.id for prompt in prompts))
        if any(ids.get(row["prompt"]) != row["prompt_id"] for row in measured.to_pylist()):
            raise DraftcertError(
                f"{folder / 'audit.json'} names other prompts than were measured: run the audit again elsewhere"
            )
        return found

    @cached_property
    def _file(self) -> pq.ParquetFile:
        with optional("report"):
            import pyarrow.parquet as pq

        with reading(self.folder / "positions.parquet"):
            return pq.ParquetFile(self.folder / "positions.parquet")

    def __len__(self) -> int:
        """Number of positions."""
        return self._file.metadata.num_rows

    @property
    def names(self) -> set[str]:
        """The columns there are."""
        return set(self._file.schema_arrow.names)

    @property
    def has_draft(self) -> bool:
        """Whether a drafter was measured."""
        return self.configuration.draft is not None

    @cached_property
    def mean_kl(self) -> float:
        """The mean of KL(target || draft) over the positions in nats, rounded up."""
        return math.nextafter(math.fsum(self.column("kl")) / len(self), math.inf)

    def column(self, name: str) -> np.ndarray:
        """A column of numbers or text, `[positions]`, or `[positions, k]` where it holds lists."""
        with reading(f"the column {shown(name)} of {self.folder / 'positions.parquet'}"):
            column = self._file.read(columns=[name])[name].to_numpy()
        return np.stack(list(column)) if len(column) and isinstance(column[0], np.ndarray) else column

    def certificates(self, rule: str, candidates: int) -> np.ndarray:
        """The certificates of a cell, in nats."""
        return self.column(f"C|{rule}|{candidates}")

    def in_context(self, row: int, before: int = 24, after: int = 6) -> tuple[str, str, str]:
        """The text generated before a position, its token, and the text after it."""
        group = int(np.searchsorted(self._starts, row, side="right")) - 1
        texts = self._file.read_row_group(group, columns=["text"])["text"].to_pylist()
        at = row - int(self._starts[group])
        return "".join(texts[max(0, at - before) : at]), texts[at], "".join(texts[at + 1 : at + 1 + after])

    @cached_property
    def _starts(self) -> np.ndarray:
        metadata = self._file.metadata
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        return np.cumsum([0, *sizes[:-1]])

    def trace(self) -> dict[str, Any] | None:
        """The recorded decoding of the first prompt, if the target could be decoded with trees."""
        trace = self._file.schema_arrow.metadata.get(TRACE)
        return None if trace is None else json.loads(trace)
