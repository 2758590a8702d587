"""A tiny random Llama with a character tokenizer, saved to a folder: everything a real model has, in milliseconds."""

import string

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from draftcert.audit import Prompt
from draftcert.audit.run import Configuration, run_audit

CHARACTERS = ["</s>", *string.ascii_lowercase, *" .,?'\n"]
PROMPTS = ["where do magpies nest?", "a b c d", "tell me a tale.", "list three rivers", "why"]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """Folder of the model."""
    folder = tmp_path_factory.mktemp("tiny")
    vocabulary = {token: number for number, token in enumerate(CHARACTERS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="</s>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", pad_token="</s>")
    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=len(CHARACTERS),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=4,
        num_attention_heads=2,
        initializer_range=0.5,
        eos_token_id=0,
        max_position_embeddings=128,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def prompts():
    """Five prompts of two categories."""
    return [Prompt(str(i), "question" if text.endswith("?") else "other", text) for i, text in enumerate(PROMPTS)]


@pytest.fixture(scope="session")
def audited(tiny_model, prompts, tmp_path_factory):
    """Folder of a finished audit of the tiny model and itself with a layer left out."""
    folder = tmp_path_factory.mktemp("audited")
    run_audit(folder, Configuration(str(tiny_model), "layers:0-1,3", 24), prompts)
    return folder
