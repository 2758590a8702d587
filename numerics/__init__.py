"""Does a solver agree? Certified evaluation, exact convex programs, and the only place that mints `Agreed`."""

from typing import TYPE_CHECKING

from ..theory.imports import lazy_names
from .acceptance import MeanKLGuarantee, guaranteed_acceptance, mean_kl_for
from .ceiling import most_accepted, most_tokens
from .certificate import ExactCertificate, certificate
from .cost import log_loss, log_loss_bound
from .joint_range import kl_for_divergence
from .margins import MarginBound, margin_bounds
from .sampling import kl_for_sampling_acceptance, sampling_acceptance, threshold_acceptance
from .top_logprobs import CertificateInterval, certificate_from_top_logprobs

if TYPE_CHECKING:  # these load cvxpy, which takes longer than a certificate
    from .agreement import Agreed, agree
    from .report import ValidationReport
    from .validation import validate
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Agreed",
    "CertificateInterval",
    "ExactCertificate",
    "MarginBound",
    "MeanKLGuarantee",
    "ValidationReport",
    "agree",
    "certificate",
    "certificate_from_top_logprobs",
    "guaranteed_acceptance",
    "kl_for_divergence",
    "kl_for_sampling_acceptance",
    "log_loss",
    "log_loss_bound",
    "margin_bounds",
    "mean_kl_for",
    "most_accepted",
    "most_tokens",
    "sampling_acceptance",
    "threshold_acceptance",
    "validate",
]
