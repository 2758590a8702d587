"""`draftcert recommend`: settings of inference systems that reach a wanted acceptance at least risk."""

from pathlib import Path
from typing import Annotated

import typer

from .console import Json, finish, out, print_json


def recommend(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Folder of a finished audit.")],
    acceptance: Annotated[float, typer.Option(help="Acceptance to reach, a share of the positions.")] = 0.8,
    by: Annotated[str, typer.Option(help="guaranteed (by the mean KL), certified or measured.")] = "guaranteed",
    mean_kl: Annotated[float | None, typer.Option(help="Mean KL of a drafter, in place of the audited one's.")] = None,
    log_loss: Annotated[
        float | None, typer.Option(help="Budget: nats a token that a rule may allow on average, such as 0.1.")
    ] = None,
    draft_cost: Annotated[
        float | None, typer.Option(help="Cost of a draft step in passes of the target: is the drafter worth serving?")
    ] = None,
    verify_cost: Annotated[
        float, typer.Option(help="Cost of a pass that checks a draft, in passes over a token.")
    ] = 1.0,
    as_json: Json = False,
) -> None:
    """For each system the rule, parameters and number of candidates that reach an acceptance at least risk.

    A budget of log-loss leaves out rules that let less likely tokens pass than that. What the drafter's mean KL
    guarantees for speculative sampling is printed beside it.

    Exit status 1 when no system can reach it.

    Example: draftcert recommend audit-out --acceptance 0.9 --by measured
    """
    from ..audit.recommendation import Wanted, promise, sampling
    from ..audit.recommendation import recommend as recommended
    from ..audit.records import Audit
    from ..audit.report import readable
    from ..audit.serving import Costs, best_length, drafts_by_length

    wanted = Wanted(acceptance, by, mean_kl, log_loss)
    audit = Audit.open(folder)
    found = recommended(audit, wanted)
    sampled = sampling(audit, mean_kl)
    costs = None if draft_cost is None else Costs(draft_cost, verify_cost)
    best = None if costs is None else best_length(drafts_by_length(audit), costs)
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
                "serving": None
                if costs is None or best is None
                else {
                    **vars(best),
                    "break_even": best.break_even,
                    "speed_up": costs.speed_up(best.length, best.tokens),
                    "speed_up_interval": [costs.speed_up(best.length, tokens) for tokens in (best.low, best.high)],
                },
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
        if costs is not None and best is not None:
            fast, low, high = (costs.speed_up(best.length, tokens) for tokens in (best.tokens, best.low, best.high))
            out.print(
                f"drafts of {best.length} tokens are the fastest: {readable(best.tokens)} tokens a pass, {fast:.2f} "
                f"times the target alone (95 %: {low:.2f} to {high:.2f}); worth it while a draft step costs less than "
                f"{readable(best.break_even)} of a target pass, if a check costs one"
            )
        for sentence in promise(wanted):
            out.print(sentence)
    finish(any(each.reached for each in found))
