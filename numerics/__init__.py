"""Does a solver agree? Certified evaluation, exact convex programs, and the only place that mints `Agreed`."""

from .agreement import Agreed, agree
from .certificate import Certificate, certificate
from .validate import Report, validate

__all__ = ["Agreed", "Certificate", "Report", "agree", "certificate", "validate"]
