"""On one Ray cluster of two nodes: workers as they are elsewhere, a validation and an audit with the same results."""

from functools import partial

import pyarrow.parquet as pq
import pytest

from draftcert.audit.run import Configuration, run_audit
from draftcert.numerics import validate
from draftcert.numerics.validation import PROFILES, Profile
from draftcert.support.workers import alike, run_tasks
from draftcert.theory import DraftcertError
from tests.support.test_workers import dies_once, fails, named, square

ray = pytest.importorskip("ray")
MEMORY = 80_000_000
"""Bytes that a node keeps objects in."""


@pytest.fixture(scope="module")
def address():
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # The nodes of the test share one virtual environment: nothing is to be installed or copied.
        cluster = Cluster(
            True, head_node_args={"num_cpus": 1, "include_dashboard": False, "object_store_memory": MEMORY}
        )
        try:
            cluster.add_node(num_cpus=1, object_store_memory=MEMORY)
            cluster.wait_for_nodes()
            ray.init(cluster.address, log_to_driver=False)
            assert len([node for node in ray.nodes() if node["Alive"]]) == 2
            yield cluster.address
        finally:
            ray.shutdown()
            cluster.shutdown()


def test_ray_is_the_same_interface(address, tmp_path, capsys):
    assert list(run_tasks(range(6), alike(square), named, ray=address)) == [0, 1, 4, 9, 16, 25]
    with pytest.raises(DraftcertError, match=r"^13 is unlucky"):
        list(run_tasks([2, 13], alike(square), named, ray=address))
    with pytest.raises(DraftcertError, match=r"^no such model"):
        list(run_tasks([1], fails, named, ray=address))
    with pytest.raises(DraftcertError, match="a worker died on number 66: "):
        list(run_tasks([2, 66], alike(square), named, ray=address))
    work = alike(partial(dies_once, tmp_path))
    assert list(run_tasks(range(4), work, named, ray=address)) == [0, 1, 2, 3]
    assert "a worker died on number 3: " in capsys.readouterr().err
    with pytest.raises(DraftcertError, match="no room for a worker"):
        list(run_tasks([1], alike(square), named, room=lambda nodes: (0, 1), ray=address))
    assert ray.is_initialized()


def test_a_validation_has_the_same_results(address, monkeypatch):
    monkeypatch.setitem(PROFILES, "small", Profile(2, (2, 3)))
    rules = ["strict_greedy"]
    assert validate("small", 4, ray=address, rules=rules) == validate("small", 4, processes=1, rules=rules)


def test_an_audit_has_the_same_table(address, tiny_model, prompts, tmp_path):
    ray.shutdown()  # it connects by itself
    configuration = Configuration(str(tiny_model), "layers:0-1,3", 12)
    run_audit(tmp_path / "ray", configuration, prompts, ray=address)
    assert not ray.is_initialized()
    run_audit(tmp_path / "here", configuration, prompts)
    here, there = (pq.read_table(tmp_path / name / "positions.parquet") for name in ("here", "ray"))
    assert there.equals(here)
