"""`draftcert verify`: confirm a certificate from its witness file."""

from pathlib import Path
from typing import Annotated

from ..support.files import read_text
from .arguments import input_file
from .console import Json, finish, out, print_json


def verify(
    file: Annotated[Path, input_file("What `draftcert certify --witness FILE` wrote;")],
    as_json: Json = False,
) -> None:
    """Confirm a certificate: value and digits, from the target, the rule and the bounds that its witness file holds.

    `numerics/verify.py` does it alone: a single file that needs nothing but Python, and can be read at a sitting.

    Example: draftcert verify witness.json
    """
    from ..numerics.verify import verify

    try:
        confirmed, text = True, verify(read_text(file))
    except ValueError as error:
        confirmed, text = False, str(error)
    if as_json:
        print_json({"confirmed": confirmed, "text": text})
    else:
        out.print(f"{'confirmed' if confirmed else 'refused'}: {text}", markup=False)
    finish(confirmed)
