"""Rules under the names they are deployed by: combinations of the families, each with its source."""

from types import MappingProxyType

PRESETS = MappingProxyType({})
