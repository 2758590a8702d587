"""What every layer may lean on and no mathematics needs: files, locks, caches, workers and text on a terminal."""
