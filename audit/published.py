"""The published figures of Qwen3-1.7B and Qwen3-4B, to stand beside those of an audit.

500 UltraChat prompts of at least 64 tokens, 128 greedy steps each. Source: Sharma 2026, "When Is a Draft Accepted? A
Theory of Acceptance in Speculative Decoding", arXiv 2606.30265.
"""

from dataclasses import dataclass

MODELS = ("Qwen3-1.7B", "Qwen3-4B")

PROMPTS, MINIMUM_PROMPT_TOKENS, STEPS = 500, 64, 128
"""The published experiment."""


@dataclass(frozen=True)
class Published:
    """One published number per model, and where an audit finds its own: a statistic of a column.

    With `run_at` the column's certified run length at that KL is meant. `None` where nothing was published.
    """

    quantity: str
    column: str
    statistic: str
    values: tuple[float | str | None, float | str | None]
    run_at: float | None = None


PUBLISHED = (
    Published("target top-1 probability", "top1", "mean", (0.845, 0.871)),
    Published("target top-1 probability", "top1", "p50", (0.969, 0.988)),
    Published("target top-1 probability", "top1", "p5", (0.343, 0.391)),
    Published("target top-10 mass", "top10_mass", "p5", (0.901, 0.927)),
    Published("strict greedy certificate", "C|strict_greedy|1", "mean", (0.438, 0.468)),
    Published("strict greedy certificate", "C|strict_greedy|1", "p50", (0.559, 0.619)),
    Published("strict greedy certificate", "C|strict_greedy|1", "p5", (0.006, 0.007)),
    Published("additive, t = 0.3", "C|additive(0.3)|1", "p5", (0.102, 0.107)),
    Published("multiplicative, alpha = 0.1", "C|multiplicative(0.1)|1", "p5", (0.279, 0.296)),
    Published("Medusa typical acceptance", "C|medusa_typical(0.09, 0.3)|1", "p5", (0.375, 0.378)),
    Published("2 candidates", "C|strict_greedy|2", "p50", (0.962, None)),
    Published("4 candidates", "C|strict_greedy|4", "p50", (1.456, None)),
    Published("8 candidates", "C|strict_greedy|8", "p50", (2.038, None)),
    Published("2 candidates", "C|strict_greedy|2", "p5", (0.071, None)),
    Published("4 candidates", "C|strict_greedy|4", "p5", (0.249, None)),
    Published("8 candidates", "C|strict_greedy|8", "p5", (0.531, 0.663)),
    Published("certified run at KL 0.3", "C|strict_greedy|1", "mean", (2.9, None), run_at=0.3),
    Published("certified run at KL 0.3, 8 candidates", "C|strict_greedy|8", "mean", ("over 36", None), run_at=0.3),
)
