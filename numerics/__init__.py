"""Does a solver agree? Certified evaluation, exact convex programs, and the only place that mints `Agreed`."""

from .certificate import Certificate, certificate

__all__ = ["Certificate", "certificate"]
