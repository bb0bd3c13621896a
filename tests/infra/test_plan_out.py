"""`flexspot preview --plan-out`: the plan file of a preview. test_offline_preview.py tests it with the engine."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from flexspot.capacity.cost.costed_plan import read_plan_file
from flexspot.capacity.plan.build import plan_of_stack_file
from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.declaring.program import PlannedResources, write_plan_file
from flexspot.infra.project import project_here

if TYPE_CHECKING:
    from pathlib import Path

URN = "urn:pulumi:dev-eks::flexspot::flexspot:index:EksCluster$aws:eks/cluster:Cluster::cluster-cluster"
UNKNOWN, SIGNATURE = "04da6b54-80e4-46f7-96ec-b56ff0331ba9", "4dabf18193072939515e22adb298388d"


def event(inputs: dict[str, Any] | None = None, verdict: str | None = None) -> Any:
    """Return an event of the engine about a resource or a policy violation."""
    new = SimpleNamespace(urn=URN, type="aws:eks/cluster:Cluster", parent="", custom=True, inputs=inputs)
    step = None if inputs is None else SimpleNamespace(metadata=SimpleNamespace(new=new))
    violation = None
    if verdict is not None:
        violation = SimpleNamespace(
            policy_name="gpu-pool-without-taint", enforcement_level="mandatory", resource_urn=URN, message=f"{verdict}\n"
        )
    return SimpleNamespace(resource_pre_event=step, policy_event=violation)


def written(path: Path, *events: Any, own_prices: Path | None = None) -> dict[str, Any]:
    heard = PlannedResources()
    for each in events:
        heard.hear(each)
    write_plan_file(path, "dev-eks", plan_of_stack_file(project_here().stacks / "Pulumi.dev-eks.yaml"), heard, own_prices)
    return json.loads(path.read_text())


def test_resources_and_verdicts_are_written_with_marks_for_unknown_and_secret_values(tmp_path: Path) -> None:
    inputs = {"name": "dev", "role": UNKNOWN, "keys": [{SIGNATURE: "1b47", "ciphertext": "[secret]"}, "[secret]"], "zones": 2}

    found = written(tmp_path / "plan.json", event(inputs), event(verdict="NodePool l4: no"), event())

    assert found["resources"] == [
        {
            "urn": URN,
            "type": "aws:eks/cluster:Cluster",
            "name": "cluster-cluster",
            "parent": None,
            "custom": True,
            "inputs": {"name": "dev", "role": {"$unknown": True}, "keys": [{"$secret": True}, {"$secret": True}], "zones": 2},
        }
    ]
    assert found["policies"] == [{"policy": "gpu-pool-without-taint", "level": "mandatory", "resource": URN, "message": "NodePool l4: no"}]
    assert (found["stack"], found["cloud"], found["cost"]["budget_usd"]) == ("dev-eks", "eks", "4000")


def test_the_plan_file_can_be_costed_with_the_stacks_own_prices(tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text(
        "cloud: aws\nsources: {own: {citation: our contract, as_of: 2026-11-01, verified: true}}\n"
        'prices: [{machine: g6.xlarge, region: us-east-1, capacity_type: spot, usd_per_hour: "0.125", source: own}]\n'
    )

    written(tmp_path / "plan.json", own_prices=prices)

    book = read_plan_file(tmp_path / "plan.json").prices()
    assert [str(price.usd_per_hour) for price in book.prices.values() if price.source == "prices_file: own"] == ["0.125"]


def test_a_file_that_cannot_be_written_is_bad_usage(tmp_path: Path) -> None:
    with pytest.raises(ExplainedError, match="cannot be written") as refused:
        written(tmp_path / "nowhere" / "plan.json")

    assert refused.value.exit_code is ExitCode.BAD_USAGE
