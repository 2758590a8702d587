"""`draftcert recommend`: settings of inference systems that reach a wanted acceptance at least risk."""

from pathlib import Path
from typing import Annotated

import typer

from .arguments import DraftCost, VerifyCost
from .console import Json, finish, out, print_json


def recommend(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Folder of a finished audit.")],
    acceptance: Annotated[float, typer.Option(help="Acceptance to reach, a share of the positions.")] = 0.8,
    by: Annotated[str, typer.Option(help="guaranteed (by the mean KL), certified or measured.")] = "guaranteed",
    mean_kl: Annotated[float | None, typer.Option(help="Mean KL of a drafter, in place of the audited one's.")] = None,
    log_loss: Annotated[
        float | None, typer.Option(help="Budget: nats a token that a rule may allow on average, such as 0.1.")
    ] = None,
    draft_cost: DraftCost = None,
    verify_cost: VerifyCost = 1.0,
    as_json: Json = False,
) -> None:
    """For each system the rule, parameters and number of candidates that reach an acceptance at least risk.

    A budget of log-loss leaves out rules that let less likely tokens pass than that. What the drafter's mean KL
    guarantees for speculative sampling is printed beside it.

    Exit status 1 when no system can reach it.

    Example: draftcert recommend audit-out --acceptance 0.9 --by measured
    """
    from ..audit.recommendation import Wanted, best_trades, promise, sampling, trade_off
    from ..audit.recommendation import recommend as recommended
    from ..audit.records import Audit
    from ..audit.report import readable
    from ..audit.serving import Costs, Served

    wanted = Wanted(acceptance, by, mean_kl, log_loss)
    audit = Audit.open(folder)
    found = recommended(audit, wanted)
    sampled = sampling(audit, mean_kl)
    traded = trade_off(audit, audit.mean_kl if mean_kl is None else mean_kl)
    served = None if draft_cost is None else Served.fastest(audit, Costs(draft_cost, verify_cost))
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
        print_json(
            {
                "wanted": vars(wanted),
                "recommendations": documents,
                "sampling": [vars(each) for each in sampled],
                "acceptance_and_cost": [vars(each) for each in traded],
                "serving": None if served is None else served.as_dict(),
                "promise": list(promise(wanted)),
            }
        )
    else:
        for each in found:
            setting = each.setting
            verdict = "reaches it" if each.reached else "does not reach it; its best"
            out.print(f"{each.system} {verdict}: {setting.rule}, candidates: {setting.candidates}", style="bold")
            out.print(f"  {each.settings}")
            numbers = {
                name: getattr(setting, name)
                for name in ("guaranteed", "certified", "measured", "risk", "log_loss", "nodes")
            }
            out.print("  " + ", ".join(f"{name} {readable(value)}" for name, value in numbers.items()))
            out.print(f"  mean KL that would guarantee it: below {readable(setting.needed_kl)} nats")
            out.print(f"  deployed: {each.differs}", style="dim")
        for each in sampled:
            counted = "" if each.measured is None else f", measured {readable(each.measured)}"
            out.print(
                f"speculative sampling, lenience {each.lenience}: guaranteed {readable(each.guaranteed)}{counted}"
            )
        out.print("most acceptance guaranteed for the log-loss allowed, one candidate (the report plots every rule):")
        for each in best_trades(traded):
            out.print(f"  {each.rule}: {readable(each.guaranteed)} for {readable(each.log_loss)} nats a token")
        if served is not None:
            out.print(str(served))
        for sentence in promise(wanted):
            out.print(sentence)
    finish(any(each.reached for each in found))
