"""Layers of a Llama-like model for the few rows of a draft tree, on a CPU."""
