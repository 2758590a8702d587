"""What the theory says about real model pairs, servers and outputs."""

from typing import TYPE_CHECKING

from ..theory.imports import lazy_names

if TYPE_CHECKING:
    from .answers import Conformance, check_answers
    from .conformance import conformance_vectors
    from .logprobs import LogprobsAudit, audit_logprobs
    from .losses import certificate_hinge
    from .lossless import Compared, compare_outputs
    from .measure import Grid
    from .prompts import Prompt, load_prompts, read_prompts
    from .recommendation import Recommendation, Wanted, recommend
    from .records import Audit
    from .report import AuditReport, write_report
    from .run import Configuration, run_audit
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Audit",
    "AuditReport",
    "Compared",
    "Configuration",
    "Conformance",
    "Grid",
    "LogprobsAudit",
    "Prompt",
    "Recommendation",
    "Wanted",
    "audit_logprobs",
    "certificate_hinge",
    "check_answers",
    "compare_outputs",
    "conformance_vectors",
    "load_prompts",
    "read_prompts",
    "recommend",
    "run_audit",
    "write_report",
]
