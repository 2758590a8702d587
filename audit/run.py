"""Run an audit: the target decodes every prompt greedily, each position is measured, one Parquet shard a prompt.

The folder of an audit holds `audit.json` (what was asked, and what of: digests of the models and of all else that makes
the numbers), `shards/` (written atomically and sealed, so that a killed run goes on where it stopped and damage shows)
and, when complete, `positions.parquet` (all shards in order, and the trace of the first). Memory does not grow with the
prompts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cache, partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from ..runtime.models import LoadedModel, identity, load_model
from ..runtime.trees.drafters import draft_model
from ..support.files import (
    SEAL,
    is_sealed,
    read_json,
    remove_partial,
    replacing,
    require_same,
    seal,
    set_aside,
    writable_folder,
    write_whole,
)
from ..support.locks import locked
from ..support.workers import Seat, one_per_cpu, run_tasks
from ..theory import FORMULAS
from ..theory.errors import DraftcertError
from ..theory.imports import optional
from ..theory.numbers import whole_number
from .decoding import decoding_trace
from .measure import Grid, measure
from .prompts import Prompt, load_prompts

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Configuration:
    """What an audit measures; equal configurations give equal tables."""

    target: str = "smollm2"
    draft: str | None = None
    max_new_tokens: int = 64
    dtype: str = "float32"
    device: str = "cpu"
    grid: Grid = field(default_factory=Grid)

    def __post_init__(self) -> None:
        """Refuse a run that would measure nothing."""
        object.__setattr__(self, "max_new_tokens", whole_number(self.max_new_tokens, "max_new_tokens", 1))

    @property
    def values(self) -> dict[str, Any]:
        """The configuration as plain data, rules with their hashes."""
        grid = {"rules": dict(self.grid.hashes), "candidates": self.grid.candidates}
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"grid": grid}


class Measured(NamedTuple):
    """The positions of a prompt, as a table, and digests of the models they were measured with.

    The table of the first prompt has the trace of how the tree decoder went through it among its metadata.
    """

    number: int
    table: pa.Table
    models: dict[str, Any]


class Worker:
    """The models of an audit, loaded once by each worker; called with one prompt after the other and its number."""

    def __init__(self, configuration: Configuration, seat: Seat) -> None:
        if seat.threads is not None:
            torch.set_num_threads(seat.threads)
        self.configuration = configuration
        device = place(configuration.device, seat.number, torch.cuda.device_count())
        self.target = load_model(configuration.target, configuration.dtype, device)
        self.draft = None if configuration.draft is None else draft_model(configuration.draft, self.target)
        self._require_every_token()
        self.models = {"target": identity(self.target.model, self.target.tokenizer)}
        if self.draft is not None:
            self.models["draft"] = identity(self.draft)

    def _require_every_token(self) -> None:
        """Refuse a drafter without some of the target's tokens: it rates other rows, and cannot read every text."""
        if self.draft is None:
            return
        has, wanted = (each.get_output_embeddings().weight.shape[0] for each in (self.draft, self.target.model))
        wanted = min(wanted, 1 + max(self.target.tokenizer.get_vocab().values()))  # further ids are padding
        if has < wanted:
            raise DraftcertError(
                f"drafter '{self.configuration.draft}' has {has} token ids, and {wanted} mean something to the target: "
                "audit with a drafter that has them all"
            )

    @torch.inference_mode()
    def __call__(self, numbered: tuple[int, Prompt]) -> Measured:
        """Decode one prompt and measure its positions."""
        with optional("report"):
            import pyarrow as pa

        index, prompt = numbered
        ids = self.target.batch(prompt.token_ids(self.target.tokenizer))
        tokens, target_logits = greedy(self.target, ids, self.configuration.max_new_tokens)
        draft_logits = None
        if self.draft is not None:
            # The drafter reads the target's own text: each position is judged on the prefix before it.
            text = torch.cat([ids, tokens[None, :-1]], 1).to(self.draft.device)
            drafted = self.draft(text, use_cache=False, logits_to_keep=len(tokens)).logits[0]
            draft_logits = drafted.to(target_logits.device)
            # Either side may pad its vocabulary: the ids that both models have are compared.
            vocab = min(target_logits.shape[-1], draft_logits.shape[-1])
            target_logits, draft_logits = target_logits[:, :vocab], draft_logits[:, :vocab]
        columns = measure(target_logits, draft_logits, self.configuration.grid)
        texts = token_texts(self.target.tokenizer, tokens.tolist())
        table = pa.table(
            {
                "prompt": [index] * len(texts),
                "prompt_id": [prompt.id] * len(texts),
                "category": [prompt.category] * len(texts),
                "position": list(range(len(texts))),
                "text": texts,
                **{name: pa.array(list(column)) if column.ndim > 1 else column for name, column in columns.items()},
            }
        )
        if index == 0 and (trace := self.trace(ids)):
            table = table.replace_schema_metadata({TRACE: json.dumps(trace)})
        return Measured(index, table, self.models)

    def trace(self, prompt: torch.Tensor) -> dict[str, Any] | None:
        """How the tree decoder goes through a prompt; `None` for a target that cannot be decoded with trees."""
        try:
            return decoding_trace(self.target, self.draft, prompt)
        except DraftcertError:
            return None


def token_texts(tokenizer: Any, tokens: list[int]) -> list[str]:
    """What each token adds to the text; a character spread over several tokens is given to the last of them."""
    texts, shown = [], ""
    for end in range(1, len(tokens) + 1):
        whole = tokenizer.decode(tokens[:end])
        if whole.endswith("\N{REPLACEMENT CHARACTER}"):
            texts.append("")
        else:
            texts.append(whole[len(shown) :])
            shown = whole
    return texts


def greedy(target: LoadedModel, prompt: torch.Tensor, max_new_tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The target's greedy tokens `[steps]` after `prompt [1, length]`, and the logits `[steps, vocab]` of each.

    Stops after the end-of-sequence token. Of the model's own generation settings only that token is used: a repetition
    penalty or a temperature would make the tokens differ from the argmax of the logits.
    """
    with optional("hf"):
        from transformers import GenerationConfig

    settings = GenerationConfig(
        do_sample=False,
        max_new_tokens=max_new_tokens,
        eos_token_id=target.model.generation_config.eos_token_id,
        pad_token_id=target.tokenizer.pad_token_id or 0,
        output_logits=True,
        return_dict_in_generate=True,
    )
    decoded = target.model.generate(prompt, attention_mask=torch.ones_like(prompt), generation_config=settings)
    return decoded.sequences[0, prompt.shape[1] :], torch.cat(decoded.logits)


def run_audit(
    folder: str | Path,
    configuration: Configuration | None = None,
    prompts: Sequence[Prompt] | None = None,
    *,
    processes: int = 1,
    ray: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Measure every prompt (the built-in ones if none are given) into `folder`; the path of `positions.parquet`.

    `processes` local processes, or a Ray cluster at address `ray`, share the prompts; the table has the same rows in
    the same order in any layout (the last bits of a matrix product can depend on how many threads share it). A folder
    with a finished or interrupted audit is continued if all that makes its numbers is the same: configuration, prompts,
    the contents of the models, the formulas and the version of this package; with another, or while another process is
    at work in it, it is refused. It is claimed with the first prompt that is measured, so after the models and all
    arguments were found good. Shards that are damaged are set aside and measured again. `progress(done, total)` is
    called after every prompt.

    Raises:
        DraftcertError: bad prompts, models or configuration, a folder that holds another audit, is in use or cannot be
            written.
    """
    with optional("report"):
        import pyarrow.parquet as pq

    configuration = configuration or Configuration()
    chosen = list(load_prompts() if prompts is None else prompts)
    if not chosen:
        raise DraftcertError("an audit needs at least one prompt")
    folder = Path(folder)
    shards = writable_folder(folder / "shards")
    with locked(folder / "audit.lock", f"the audit in {folder}", wait=False):
        remove_partial(folder)
        remove_partial(shards)
        claim = _Claim(folder, configuration, chosen)
        waiting = [(i, prompt) for i, prompt in enumerate(chosen) if not _is_whole(shards / _shard(i))]
        done = len(chosen) - len(waiting)
        if not waiting:
            claim.check(Worker(configuration, Seat()).models)
        if progress:
            progress(done, len(chosen))
        for index, table, models in run_tasks(
            waiting,
            partial(Worker, configuration),
            lambda numbered: f"prompt '{numbered[1].id}'",
            processes=processes,
            ray=ray,
            room=partial(actors, configuration.device),
            ordered=False,
        ):
            claim.check(models)
            with replacing(shards / _shard(index)) as shard:
                pq.write_table(table.cast(_sealable(table.schema)), shard)
                seal(shard)
            done += 1
            if progress:
                progress(done, len(chosen))
        return _join(folder, len(chosen))


TRACE, SEALED = b"trace", b"seal"
"""Metadata of a shard, and of all joined: the trace of the first prompt, as JSON, and the checksum."""


def _shard(index: int) -> str:
    return f"{index:06d}.parquet"


def _is_whole(shard: Path) -> bool:
    """Whether there is such a shard; one that is damaged is set aside."""
    if not shard.is_file():
        return False
    if is_sealed(shard):
        return True
    set_aside(shard, "its prompt is measured again")
    return False


class _Claim:
    """What a folder's audit is of: checked before each of its shards is written, and written with the first."""

    def __init__(self, folder: Path, configuration: Configuration, prompts: list[Prompt]) -> None:
        self._folder = folder
        self._asked = {
            "configuration": configuration.values,
            "prompts": [asdict(prompt) for prompt in prompts],
            "made_by": made_by(),
        }
        file = folder / "audit.json"
        self._found = read_json(file) if file.is_file() else None
        if self._found is not None:
            self._compare(self._asked)
        elif left := next(chain(folder.glob("positions.parquet"), folder.glob("shards/*.parquet")), None):
            raise DraftcertError(
                f"{left} was measured here, and {file}, which says what of, is missing: give another folder"
            )

    def check(self, models: dict[str, Any]) -> None:
        """Refuse results of other models than those the folder's audit is of."""
        if self._found is None:
            self._found = json.loads(json.dumps(self._asked | {"models": models}))  # as it will be read back
            write_whole(self._folder / "audit.json", json.dumps(self._found, indent=1))
        self._compare({"models": models})

    def _compare(self, asked: dict[str, Any]) -> None:
        found = self._found if isinstance(self._found, dict) else {}
        require_same(f"the audit in {self._folder}", {part: found.get(part) for part in asked}, asked)


@cache
def made_by() -> dict[str, str]:
    """What turns a model's logits into the numbers of an audit: this version and its formulas."""
    formulas = json.dumps({name: formula.sha256 for name, formula in sorted(FORMULAS.items())})
    return {"draftcert": version("draftcert"), "formulas": hashlib.sha256(formulas.encode()).hexdigest()}


def place(device: str, number: int, gpus: int) -> str:
    """The device of worker `number` on a machine with so many GPUs: "cuda" takes them in turn, others are kept.

    >>> place("cuda", 5, 4), place("cuda:2", 5, 4)
    ('cuda:1', 'cuda:2')
    """
    return f"cuda:{number % gpus}" if device == "cuda" and gpus else device


def actors(device: str, nodes: Sequence[Mapping[str, float]]) -> tuple[int, int]:
    """How many actors a Ray cluster of such nodes holds, and the GPUs of each: one, or a node's where "auto" spreads.

    >>> actors("cuda", [{"CPU": 16, "GPU": 8}, {"CPU": 16}]), actors("auto", [{"CPU": 16, "GPU": 8}, {"CPU": 16}])
    ((8, 1), (1, 8))

    Raises:
        DraftcertError: a numbered GPU, since Ray numbers the GPUs of each actor from 0.
    """
    if device.startswith("cuda:"):
        raise DraftcertError(f"device '{device}' over Ray: each actor is given its own GPU, so give cuda")
    present = [int(node.get("GPU", 0)) for node in nodes]
    gpus = {"cuda": 1, "auto": min(filter(None, present), default=0)}.get(device, 0)
    if gpus:
        return sum(have // gpus for have in present), gpus
    return (0, 1) if device == "cuda" else one_per_cpu(nodes)


def _join(folder: Path, count: int) -> Path:
    """All shards in order as one sealed file, a row group each, with the trace of the first."""
    with optional("report"):
        import pyarrow.parquet as pq

    paths = [folder / "shards" / _shard(index) for index in range(count)]
    schema = pq.read_schema(paths[0])
    whole = folder / "positions.parquet"
    with replacing(whole) as joined:
        with pq.ParquetWriter(joined, _sealable(schema)) as writer:
            for path in paths:
                writer.write_table(pq.read_table(path))
        seal(joined)
    return whole


def _sealable(schema: pa.Schema) -> pa.Schema:
    """The schema of a file with a place for its checksum, behind what else the file says of itself."""
    return schema.with_metadata({**(schema.metadata or {}), SEALED: SEAL})
