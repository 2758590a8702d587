"""`draftcert reproduce`: the paper's experiment on any target."""

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from ..theory.errors import DraftcertError
from .arguments import Device, Dtype, Processes, Prompts, Ray, Target, output_folder
from .audit import run_and_report
from .console import Json


def reproduce(
    target: Target = "smollm2",
    prompts: Prompts = None,
    folder: Annotated[Path, output_folder("Folder; an interrupted run is continued.")] = Path("reproduce-out"),
    limit: Annotated[int, typer.Option(min=1, help="Prompts.")] = 500,
    minimum: Annotated[int, typer.Option("--min-prompt-tokens", min=1, help="Shorter prompts are left out.")] = 64,
    steps: Annotated[int, typer.Option(min=1, help="Greedy steps per prompt.")] = 128,
    dtype: Dtype = "float32",
    device: Device = "cpu",
    processes: Processes = 1,
    ray: Ray = None,
    as_json: Json = False,
) -> None:
    """Repeat the published experiment: 500 prompts of at least 64 tokens, 128 greedy steps each, all rules.

    Example: draftcert reproduce --min-prompt-tokens 1 --limit 1 --steps 8
    """
    from ..audit import read_prompts
    from ..audit.measure import Grid
    from ..audit.recommendation import Wanted
    from ..audit.run import Configuration
    from ..runtime.models import load_tokenizer

    tokenizer = load_tokenizer(target)
    # A prompt's length is that of its text, without the chat template around it.
    long_enough = (each for each in read_prompts(prompts) if len(tokenizer(each.text)["input_ids"]) >= minimum)
    chosen = list(islice(long_enough, limit))
    if not chosen:
        raise DraftcertError(f"no prompt has {minimum} tokens: give others, or lower --min-prompt-tokens")
    configuration = Configuration(target, None, steps, dtype, device, Grid())
    run_and_report(folder, configuration, chosen, Wanted(), processes, ray, as_json)
