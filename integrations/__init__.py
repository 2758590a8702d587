"""Where engines take draft trees in: one file an engine."""
