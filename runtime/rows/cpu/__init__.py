"""CPU kernels: one pass over rows of logits."""
