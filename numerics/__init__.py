"""Does a solver agree? Certified evaluation, exact convex programs, and the only place that mints `Agreed`."""

from typing import TYPE_CHECKING

from ..theory.imports import lazy_names
from .acceptance import MeanKLGuarantee, guaranteed_acceptance, mean_kl_for
from .certificate import ExactCertificate, certificate
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
    "kl_for_sampling_acceptance",
    "margin_bounds",
    "mean_kl_for",
    "sampling_acceptance",
    "threshold_acceptance",
    "validate",
]
