"""Whole files, locks, caches, workers and text on a terminal: one helper each, without mathematics."""
