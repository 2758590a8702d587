"""Acceptance certificates for speculative decoding: derived, proved, validated, compiled and audited.

The names below are those of everyday use from the layers `draftcert.theory`, `numerics`, `runtime` and `audit`, which
hold more. Each is loaded when it is first asked for: `import draftcert` itself costs next to nothing.

>>> import draftcert
>>> print(draftcert.certificate(["0.5", "0.45", "0.05"], "strict_greedy", candidates=2, digits=12))
0.213681095766
"""

from typing import TYPE_CHECKING

from draftcert.theory.errors import DraftcertError
from draftcert.theory.imports import lazy_names

if TYPE_CHECKING:
    from draftcert.audit import (
        audit_logprobs,
        certificate_hinge,
        check_answers,
        compare_outputs,
        conformance_vectors,
        recommend,
        run_audit,
        write_report,
    )
    from draftcert.numerics import (
        CertificateInterval,
        MarginBound,
        MeanKLGuarantee,
        certificate,
        certificate_from_top_logprobs,
        guaranteed_acceptance,
        kl_for_divergence,
        kl_for_sampling_acceptance,
        log_loss,
        log_loss_bound,
        margin_bounds,
        mean_kl_for,
        sampling_acceptance,
    )
    from draftcert.runtime import (
        Generation,
        GreedyTreeDecoder,
        LoadedModel,
        RowStats,
        Tree,
        Verification,
        certify,
        load_model,
        row_stats,
        verify_tree,
    )
    from draftcert.theory import (
        FORMULAS,
        PRESETS,
        RULES,
        THEOREMS,
        Formula,
        Rule,
        RuleFamily,
        Theorem,
        implication,
        parse_rule,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__version__ = "0.1.0"

__all__ = [
    "FORMULAS",
    "PRESETS",
    "RULES",
    "THEOREMS",
    "CertificateInterval",
    "DraftcertError",
    "Formula",
    "Generation",
    "GreedyTreeDecoder",
    "LoadedModel",
    "MarginBound",
    "MeanKLGuarantee",
    "RowStats",
    "Rule",
    "RuleFamily",
    "Theorem",
    "Tree",
    "Verification",
    "__version__",
    "audit_logprobs",
    "certificate",
    "certificate_from_top_logprobs",
    "certificate_hinge",
    "certify",
    "check_answers",
    "compare_outputs",
    "conformance_vectors",
    "guaranteed_acceptance",
    "implication",
    "kl_for_divergence",
    "kl_for_sampling_acceptance",
    "load_model",
    "log_loss",
    "log_loss_bound",
    "margin_bounds",
    "mean_kl_for",
    "parse_rule",
    "recommend",
    "row_stats",
    "run_audit",
    "sampling_acceptance",
    "verify_tree",
    "write_report",
]
