"""What the theory says about real model pairs, servers and outputs."""

from .prompts import Prompt, load_prompts, read_prompts

__all__ = ["Prompt", "load_prompts", "read_prompts"]
