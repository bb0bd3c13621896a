"""Machine groups whose GPU machine is named only by their launch template are judged, also by the pack under the real engine.

The programs have the shapes of public ones: pulumi/examples (aws-ts-eks-migrate-nodegroups, aws-py-eks), the page of `aws.eks.NodeGroup`
with its own template, and self-managed groups with the tags of cluster-autoscaler.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from engine_analysis import analyzed, written_state

from flexspot.policies.inventory.reading import views_of
from flexspot.policies.inventory.reading.eks import with_template
from flexspot.policies.inventory.reading.source import from_pulumi
from flexspot.policies.inventory.views import GpuPool, Pool

if TYPE_CHECKING:
    from pathlib import Path

LATER = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
TEMPLATE, NATIVE_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate", "aws-native:ec2:LaunchTemplate"
GROUP, NATIVE_GROUP = "aws:eks/nodeGroup:NodeGroup", "aws-native:eks:Nodegroup"
SCALING, NATIVE_SCALING = "aws:autoscaling/group:Group", "aws-native:autoscaling:AutoScalingGroup"


def urn(token: str, name: str) -> str:
    return f"urn:pulumi:dev::gpus::{token}::{name}"


def group(**more: Any) -> dict[str, Any]:
    """Return a node group as in a first preview, where the template's id and version are not known yet."""
    named = {"id": LATER, "version": LATER}
    return {"clusterName": "ml", "scalingConfig": {"maxSize": 4, "minSize": 0, "desiredSize": 0}, "launchTemplate": named, **more}


def stack(folder: Path, resources: list[tuple[str, str, dict[str, Any]]], refers: dict[str, dict[str, list[str]]]) -> Path:
    """Write a state in which fields of some resources depend on other resources, and return its path."""
    state = written_state(folder, [(urn(token, name), token, inputs) for token, name, inputs in resources])
    exported = json.loads(state.read_text())
    for each in exported["deployment"]["resources"]:
        name = each["urn"].rpartition("::")[2]
        if name in refers:
            each["propertyDependencies"] = refers[name]
            each["dependencies"] = sorted({one for urns in refers[name].values() for one in urns})
    state.write_text(json.dumps(exported))
    return state


def diagnostics(folder: Path, state: Path) -> set[tuple[str, str, str]]:
    """Return resource, policy and level of each diagnostic."""
    _, events, printed = analyzed(folder, state)
    assert "panic" not in printed
    return {(each["resourceUrn"].rpartition("::")[2], each["policyName"], each["enforcementLevel"]) for each in events}


@pytest.mark.engine
def test_a_node_group_is_judged_by_the_machine_of_its_template_in_a_first_preview(tmp_path: Path) -> None:
    templates = {"gpu": "g6.12xlarge", "cpu": "m7i.large", "tainted": "p5.48xlarge"}
    taints = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]
    resources = [(TEMPLATE, f"{name}-template", {"instanceType": machine}) for name, machine in templates.items()]
    resources += [(GROUP, name, group(**({"taints": taints} if name == "tainted" else {}))) for name in (*templates, "of another stack's")]
    refers = {name: {"launchTemplate": [urn(TEMPLATE, f"{name}-template")]} for name in templates}

    found = diagnostics(tmp_path, stack(tmp_path, resources, refers))

    assert {name for name, rule, level in found if (rule, level) == ("gpu-pool-without-taint", "mandatory")} == {"gpu"}
    assert {name for name, rule, _ in found if name == "cpu" and rule.startswith("gpu-")} == set()


def pool(token: str, inputs: dict[str, Any], *templates: tuple[str, dict[str, Any]], referred: bool = True) -> Pool:
    made = [from_pulumi(kind, f"template-{place}", fields) for place, (kind, fields) in enumerate(templates)]
    whole = with_template(from_pulumi(token, "group", inputs), made if referred else [], made)
    [found] = [each for each in views_of(whole) if isinstance(each, Pool)]
    return found


def test_the_launch_template_of_the_native_provider_is_read() -> None:
    data = {"launchTemplateName": "gpus", "launchTemplateData": {"instanceType": "g6.12xlarge"}}
    inputs = {"clusterName": "ml", "scalingConfig": {"maxSize": 2}, "launchTemplate": {"name": "gpus"}}

    found = pool(NATIVE_GROUP, inputs, (NATIVE_TEMPLATE, data), referred=False)

    assert isinstance(found, GpuPool)
    assert (found.concerned, found.gpus, found.evidence) == (True, 8, "the instanceType of its launch template")


@pytest.mark.parametrize(
    "token,named",
    [
        (SCALING, {"launchTemplate": {"id": LATER, "version": "$Latest"}}),
        (NATIVE_SCALING, {"launchTemplate": {"launchTemplateId": LATER, "version": LATER}}),
        (SCALING, {"mixedInstancesPolicy": {"launchTemplate": {"launchTemplateSpecification": {"launchTemplateId": LATER}}}}),
    ],
)
def test_a_self_managed_group_of_a_cluster_has_its_templates_machine(token: str, named: dict[str, Any]) -> None:
    tags = [{"key": "k8s.io/cluster-autoscaler/enabled", "value": "true", "propagateAtLaunch": True}]
    spot = {"instanceType": "g6.12xlarge", "instanceMarketOptions": {"marketType": "spot"}}

    found = pool(token, {"maxSize": 4, "tags": tags, **named}, (TEMPLATE, spot))

    assert isinstance(found, GpuPool)
    assert (found.concerned, found.gpus) == (True, 16)
    assert found.spot is True or "mixedInstancesPolicy" in named


def test_a_groups_own_machine_takes_precedence_over_its_templates() -> None:
    found = pool(GROUP, group(instanceTypes=["m7i.large"]), (TEMPLATE, {"instanceType": "g6.12xlarge"}))

    assert not isinstance(found, GpuPool)


def test_two_templates_with_one_name_leave_the_group_undecided() -> None:
    gpus = (TEMPLATE, {"name": "a", "instanceType": "g6.12xlarge"})
    found = pool(GROUP, group(launchTemplate={"name": "a"}), gpus, gpus, referred=False)

    assert found.concerned is not True
