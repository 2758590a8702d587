"""What the tests that run Coq share."""

from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from draftcert.proofs_check import formal


@pytest.fixture(scope="module")
def compiled_once() -> Iterator[None]:
    """Coq compiles a file once for all developments that are the same up to it: most forgeries change a late one."""
    compile_anew = formal.run
    known: dict[tuple[object, ...], tuple[CompletedProcess[str], dict[str, bytes]]] = {}

    def run(command: list[str], folder: Path) -> CompletedProcess[str]:
        if not command[-1].endswith(".v"):
            return compile_anew(command, folder)
        places = [folder, *(Path(word) for word in command if word.startswith("/"))]
        sources = [(place != folder, path.name, path.read_bytes()) for place in places for path in place.glob("*.v")]
        of = (*(word for word in command if not word.startswith("/")), *sorted(sources))
        if of not in known:
            before = {path.name for path in folder.iterdir()}
            done = compile_anew(command, folder)
            made = {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in before}
            known[of] = done, made
        done, made = known[of]
        for name, content in made.items():
            (folder / name).write_bytes(content)
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formal, "run", run)
        yield
