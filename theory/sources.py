"""The literature and the code that records cite, as BibTeX knows them."""

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType


@dataclass(frozen=True)
class Source:
    """A paper or a repository: how citations of records name it, and what a bibliography says of it."""

    mark: str
    """What its citations hold: an arXiv number, a journal's volume and page, or a repository."""
    authors: tuple[str, ...]
    """As `Family, Given`; a last `others` stands for more."""
    title: str
    year: int | None = None
    journal: str = ""

    @property
    def key(self) -> str:
        """The key of its entry."""
        if self.year is None or self.mark == "draftcert":
            return self.mark.rpartition("/")[2].lower()
        family = unicodedata.normalize("NFD", self.authors[0].partition(",")[0]).encode("ascii", "ignore").decode()
        return f"{family.lower()}{self.year}"

    @property
    def url(self) -> str:
        """Where it is found; empty for what is only in print."""
        if self.mark.startswith("arXiv "):
            return f"https://arxiv.org/abs/{self.mark.removeprefix('arXiv ')}"
        return f"https://github.com/{self.mark}" if "/" in self.mark else ""

    @property
    def words(self) -> str:
        """Its entry in a list of references.

        >>> print(SOURCES["leviathan2022"].words)
        Yaniv Leviathan, Matan Kalman, Yossi Matias. Fast Inference from Transformers via Speculative Decoding. 2022
        """
        names = [" ".join(reversed(author.strip("{}").split(", "))) for author in self.authors]
        where = [part for part in (self.journal, str(self.year or "")) if part]
        return ". ".join([", ".join(names), self.title, *[", ".join(where)] * bool(where)])

    @cached_property
    def bibtex(self) -> str:
        """Its entry.

        >>> print(SOURCES["leviathan2022"].bibtex)
        @misc{leviathan2022,
          author = {Leviathan, Yaniv and Kalman, Matan and Matias, Yossi},
          title = {{Fast Inference from Transformers via Speculative Decoding}},
          year = {2022},
          eprint = {2211.17192},
          archiveprefix = {arXiv},
          url = {https://arxiv.org/abs/2211.17192},
        }
        """
        fields = {
            "author": " and ".join(self.authors),
            "title": f"{{{self.title}}}",
            "journal": self.journal,
            "year": str(self.year or ""),
            "eprint": self.mark.removeprefix("arXiv ") if self.mark.startswith("arXiv ") else "",
            "archiveprefix": "arXiv" if self.mark.startswith("arXiv ") else "",
            "url": self.url,
        }
        lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
        lines[0] = lines[0].replace("ë", '{\\"e}').replace("ø", "{\\o}")
        return "\n".join([f"@{'article' if self.journal else 'misc'}{{{self.key},", *lines, "}"])


_LIST = (
    Source(
        "draftcert", ("{The draftcert authors}",), "draftcert: acceptance certificates for speculative decoding", 2026
    ),
    Source(
        "arXiv 2606.30265",
        ("Sharma, A.",),
        "When Is a Draft Accepted? A Theory of Acceptance in Speculative Decoding",
        2026,
    ),
    Source(
        "Ann. Math. Statist. 22 (1951) 79-86",
        ("Kullback, Solomon", "Leibler, Richard A."),
        "On Information and Sufficiency",
        1951,
        "Annals of Mathematical Statistics 22, 79-86",
    ),
    Source(
        "IEEE Trans. Inf. Theory 49 (2003) 1491-1498",
        ("Fedotov, Alexei A.", "Harremoës, Peter", "Topsøe, Flemming"),
        "Refinements of Pinsker's Inequality",
        2003,
        "IEEE Transactions on Information Theory 49, 1491-1498",
    ),
    Source(
        "IEEE Trans. Inf. Theory 57 (2011)",
        ("Harremoës, Peter", "Vajda, Igor"),
        "On Pairs of f-Divergences and Their Joint Range",
        2011,
        "IEEE Transactions on Information Theory 57, 3230-3235",
    ),
    Source(
        "arXiv 2211.17192",
        ("Leviathan, Yaniv", "Kalman, Matan", "Matias, Yossi"),
        "Fast Inference from Transformers via Speculative Decoding",
        2022,
    ),
    Source(
        "arXiv 2302.01318",
        ("Chen, Charlie", "Borgeaud, Sebastian", "Irving, Geoffrey", "others"),
        "Accelerating Large Language Model Decoding with Speculative Sampling",
        2023,
    ),
    Source(
        "arXiv 2305.09781",
        ("Miao, Xupeng", "others"),
        "SpecInfer: Accelerating Large Language Model Serving with Tree-based Speculative Inference and Verification",
        2023,
    ),
    Source(
        "arXiv 2401.10774",
        ("Cai, Tianle", "others"),
        "Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding Heads",
        2024,
    ),
    Source("arXiv 2403.10444", ("Sun, Ziteng", "others"), "Block Verification Accelerates Speculative Decoding", 2024),
    Source(
        "arXiv 2502.20704",
        ("Holsman, Maximilian", "Huang, Yukun", "Dhingra, Bhuwan"),
        "Fuzzy Speculative Decoding for a Tunable Accuracy-Runtime Tradeoff",
        2025,
    ),
    Source(
        "arXiv 2511.22972",
        ("Li, Jinze", "Xu, Yixing", "Li, Guanchen", "others"),
        "Training-Free Loosely Speculative Decoding: Accepting Semantically Correct Drafts Beyond Exact Match",
        2025,
    ),
    Source(
        "arXiv 2512.11718",
        ("Pankratov, Sergey", "Alistarh, Dan"),
        "Speculative Decoding Speed-of-Light: Optimal Lower Bounds via Branching Random Walks",
        2025,
    ),
    Source(
        "arXiv 2601.15498",
        ("Song, Jingwei", "Wang, Xinyu", "Wang, Hanbin", "others"),
        "MARS: Unleashing the Power of Speculative Decoding via Margin-Aware Verification",
        2026,
    ),
    Source(
        "arXiv 2604.04987",
        ("Hao, Yongchang", "Mou, Lili"),
        "Cactus: Accelerating Auto-Regressive Decoding with Constrained Acceptance Speculative Sampling",
        2026,
    ),
    Source("huggingface/transformers", ("{Hugging Face}",), "Transformers"),
    Source("vllm-project/vllm", ("{The vLLM project}",), "vLLM"),
    Source("vllm-project/vllm-ascend", ("{The vLLM project}",), "vLLM Ascend"),
    Source("sgl-project/sglang", ("{The SGLang project}",), "SGLang"),
    Source("NVIDIA/TensorRT-LLM", ("{NVIDIA}",), "TensorRT-LLM"),
    Source("FasterDecoding/Medusa", ("{FasterDecoding}",), "Medusa, the code"),
    Source("ggml-org/llama.cpp", ("{ggml-org}",), "llama.cpp"),
)
SOURCES = MappingProxyType({source.key: source for source in _LIST})
"""By the keys of their entries."""


def cited(citation: str) -> tuple[Source, ...]:
    """The sources that a record's citation names, in the order of the list.

    >>> [source.key for source in cited("draftcert; compare arXiv 2512.11718")]
    ['draftcert', 'pankratov2025']
    """
    return tuple(source for source in _LIST if re.search(rf"{re.escape(source.mark)}(?![\w-])", citation))
