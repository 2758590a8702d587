"""Recommendations, and the syntax of what they print: as each system's documentation and code read it."""

import argparse
import ast
import json
import shlex
from fractions import Fraction

import pytest
import yaml

from draftcert.audit.judge import Judge
from draftcert.audit.recommendation import SYSTEMS, Wanted, recommend
from draftcert.audit.records import Audit
from draftcert.audit.serving import MOST_NODES
from draftcert.numerics import MeanKLGuarantee
from draftcert.runtime.models import load_model
from draftcert.runtime.trees.drafters import draft_model
from draftcert.theory import DraftcertError


@pytest.mark.parametrize(("by", "acceptance"), [("measured", 0.7), ("certified", 0.2), ("guaranteed", 0.1)])
def test_a_recommended_setting_reaches_what_is_wanted_at_least_risk(audited, by, acceptance):
    audit = Audit.open(audited)
    found, judge = recommend(audit, Wanted(acceptance, by)), Judge(audit)
    assert [each.system for each in found] == [system.name for system in SYSTEMS]
    assert any(each.reached for each in found)
    for each in found:
        assert (each.setting.reached(by) >= acceptance) == each.reached
        assert each.setting.certified is not None
        assert each.setting.measured is not None
        assert max(each.setting.guaranteed, each.setting.certified) <= each.setting.measured
        certificates = judge(each.setting.rule, each.setting.candidates).certificates
        below = each.setting.needed_kl * (1 - 1e-9)
        assert MeanKLGuarantee(certificates).acceptance(below) >= Fraction(str(acceptance))
        assert each.setting.nodes == pytest.approx(each.setting.candidates / each.setting.measured)
    strict = next(each for each in found if each.system.startswith("SGLang, temperature 0"))
    assert strict.setting.risk == 0


def test_a_wanted_acceptance_that_nothing_reaches_gives_the_best_there_is(audited):
    for each in recommend(Audit.open(audited), Wanted(1.0, "certified")):
        assert not each.reached


@pytest.mark.parametrize(
    "wanted",
    [
        (0.0,),
        (1.2,),
        (0.5, "hoped"),
        (0.5, "guaranteed", -1.0),
        ("0.8",),
        (None,),
        (True,),
        (0.5, "measured", "0"),
        (0.5, "measured", None, [1]),
    ],
)
def test_what_nobody_can_want_is_refused(wanted):
    with pytest.raises(DraftcertError):
        Wanted(*wanted)


def printed(name):
    """Every setting that a system can be told, with its parameters and candidates."""
    system = next(system for system in SYSTEMS if system.name == name)
    return [
        (system.settings(parameters, candidates), parameters, candidates)
        for parameters in system.parameters
        for candidates in system.candidates
    ]


def test_transformers_runs_what_is_printed(tiny_model, prompts):
    target = load_model(tiny_model)
    inputs = {"input_ids": target.encode(prompts[0].text)}
    ((setting, *_),) = printed("transformers")
    names = {"model": target.model, "drafter": draft_model(str(tiny_model), target), "inputs": inputs}
    assisted = eval(setting, names)
    assert assisted.tolist() == target.model.generate(**inputs, do_sample=False).tolist()


def test_vllm_reads_its_json():
    """docs.vllm.ai, features/speculative_decoding/draft_model."""
    ((setting, *_),) = printed("vLLM")
    flag, value = shlex.split(setting, comments=True)
    assert flag == "--speculative-config"
    assert json.loads(value) == {"method": "draft_model", "model": "DRAFTER", "num_speculative_tokens": 4}


@pytest.mark.parametrize("name", ["SGLang, temperature 0", "SGLang, temperature 1"])
def test_sglang_reads_its_flags_and_drops_no_candidate(name):
    """sgl-project/sglang, docs/advanced_features/speculative_decoding.md and srt/speculative/eagle_utils.py."""
    parser = argparse.ArgumentParser(exit_on_error=False, allow_abbrev=False)
    parser.add_argument("--speculative-algorithm", choices=["EAGLE", "EAGLE3", "STANDALONE"], required=True)
    parser.add_argument("--speculative-draft-model-path", required=True)
    for flag in ("num-steps", "eagle-topk", "num-draft-tokens"):  # all three, or none of them
        parser.add_argument(f"--speculative-{flag}", type=int, required=True)
    parser.add_argument("--speculative-accept-threshold-single", type=float, default=1.0)
    for setting, parameters, candidates in printed(name):
        read = parser.parse_args(shlex.split(setting, comments=True))
        assert read.speculative_eagle_topk == candidates
        assert str(read.speculative_accept_threshold_single) == str(float(*parameters or ("1",)))
        candidates = [candidates] + [candidates * candidates] * (read.speculative_num_steps - 1)
        assert read.speculative_num_draft_tokens - 1 == sum(candidates) < MOST_NODES
        if candidates == 1:
            assert read.speculative_num_draft_tokens == read.speculative_num_steps + 1


def test_tensorrt_llm_reads_its_yaml():
    """nvidia.github.io/TensorRT-LLM, llm-api/reference/MTPDecodingConfig: names, types and ranges."""
    for setting, (topk, delta), _ in printed("TensorRT-LLM"):
        (read,) = yaml.safe_load(setting).values()
        assert read == {
            "decoding_type": "MTP",
            "use_relaxed_acceptance_for_thinking": True,
            "relaxed_topk": int(topk),
            "relaxed_delta": float(delta),
        }
        assert read["relaxed_topk"] > 0
        assert read["relaxed_delta"] >= 0


def test_medusa_reads_its_call_and_its_tree():
    """FasterDecoding/Medusa, medusa/model: every node's parent is in the tree; a head shows TOPK = 10 tokens."""
    for setting, (threshold, alpha), candidates in printed("Medusa"):
        call = ast.parse(setting, mode="eval").body
        assert isinstance(call, ast.Call)
        read = {each.arg: eval(ast.unparse(each.value)) for each in call.keywords}
        choices = read.pop("medusa_choices")
        assert read == {"temperature": 1.0, "posterior_threshold": float(threshold), "posterior_alpha": float(alpha)}
        assert len(set(map(tuple, choices))) == len(choices) <= MOST_NODES
        assert all(path[:-1] in [[], *choices] and max(path) < 10 for path in choices)
        for depth in range(4):
            assert sum(path[:-1] == [0] * depth for path in choices) == candidates
