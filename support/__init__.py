"""What every layer may lean on and no mathematics needs: files, locks, caches, workers and text on a terminal."""

__all__: list[str] = []  # its names are those of its modules
