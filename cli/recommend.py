"""`draftcert recommend`: settings of inference systems that reach a wanted acceptance at least risk."""

from pathlib import Path
from typing import Annotated

import typer

from .console import Json, finish, out, print_json


def recommend(
    folder: Annotated[Path, typer.Argument(help="Folder of a finished audit.")],
    acceptance: Annotated[float, typer.Option(help="Acceptance to reach, a share of the positions.")] = 0.8,
    by: Annotated[str, typer.Option(help="guaranteed (by the mean KL), certified or measured.")] = "guaranteed",
    mean_kl: Annotated[float | None, typer.Option(help="Mean KL of a drafter, in place of the audited one's.")] = None,
    as_json: Json = False,
) -> None:
    """For each system the rule, parameters and number of candidates that reach an acceptance at least risk.

    Exit status 1 when no system can reach it.

    Example: draftcert recommend audit-out --acceptance 0.9 --by measured
    """
    from ..audit.recommendation import Wanted, promise
    from ..audit.recommendation import recommend as recommended
    from ..audit.records import Audit
    from ..audit.report import readable

    wanted = Wanted(acceptance, by, mean_kl)
    found = recommended(Audit.open(folder), wanted)
    if as_json:
        documents = [
            {
                "system": each.system,
                "reached": each.reached,
                "settings": each.settings,
                **{key: str(value) if key == "rule" else value for key, value in vars(each.setting).items()},
                "nodes": each.setting.nodes,
                "differs": each.differs,
            }
            for each in found
        ]
        print_json({"wanted": vars(wanted), "recommendations": documents, "promise": list(promise(wanted))})
    else:
        for each in found:
            setting = each.setting
            verdict = "reaches it" if each.reached else "does not reach it; its best"
            out.print(f"{each.system} {verdict}: {setting.rule}, candidates: {setting.candidates}", style="bold")
            out.print(f"  {each.settings}")
            numbers = {
                name: getattr(setting, name) for name in ("guaranteed", "certified", "measured", "risk", "nodes")
            }
            out.print("  " + ", ".join(f"{name} {readable(value)}" for name, value in numbers.items()))
            out.print(f"  mean KL that would guarantee it: below {readable(setting.needed_kl)} nats")
            out.print(f"  deployed: {each.differs}", style="dim")
        for sentence in promise(wanted):
            out.print(sentence)
    finish(any(each.reached for each in found))
