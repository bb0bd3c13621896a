"""The program over the shipped local stack: which resources it registers, and what they agree on."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from program_declarations import KUEUE, Declarations, Preview, as_shipped, declared, shipped

from capacity.values.errors import SettingsError

pytestmark = pytest.mark.slow


def objects(made: Declarations) -> list[tuple[str, dict[str, Any]]]:
    """Kind and inputs of the objects of Kubernetes."""
    return [(each.type.rpartition(":")[2], each.inputs) for each in made.made.values() if each.type.startswith("kubernetes:")]


def test_the_local_stack_registers_every_object_of_its_plan() -> None:
    assert Counter(kind for kind, _ in objects(as_shipped("local"))) == {
        "PriorityClass": 4,
        "KWOKNodeClass": 1,
        "NodePool": 3,
        "Namespace": 2,
        "ResourceQuota": 4,
        "LimitRange": 2,
        "NetworkPolicy": 2,
        "ConfigMap": 2,
        "Role": 4,
        "RoleBinding": 2,
        "ClusterRole": 2,
        "ClusterRoleBinding": 2,
        "Service": 2,
        "ServiceAccount": 2,
        "WorkloadPriorityClass": 4,
        "ResourceFlavor": 2,
        "ClusterQueue": 4,
        "LocalQueue": 4,
        "ValidatingAdmissionPolicy": 6,
        "ValidatingAdmissionPolicyBinding": 7,
        "MutatingAdmissionPolicy": 1,
        "MutatingAdmissionPolicyBinding": 1,
    }


def test_every_object_says_whose_it_is() -> None:
    wanted = {"flexspot.dev/environment": "local", "flexspot.dev/owner": "platform"}

    metadata = [inputs["metadata"] for _, inputs in objects(as_shipped("local"))]
    assert [each["name"] for each in metadata if not wanted.items() <= each["labels"].items()] == []


def test_what_kueue_selects_is_what_karpenter_can_make() -> None:
    made = as_shipped("local")

    [cpu, flavor] = sorted(made.inputs_of(f"{KUEUE}:ResourceFlavor"), key=lambda each: "tolerations" in each["spec"])
    pools = {each["metadata"]["name"]: each["spec"]["template"]["spec"] for each in made.inputs_of("kubernetes:karpenter.sh/v1:NodePool")}
    pool = pools[flavor["metadata"]["name"]]
    # Karpenter itself puts the pool's name on its nodes, and knows that it will.
    known = {each["key"]: each["values"] for each in pool["requirements"]} | {"karpenter.sh/nodepool": [flavor["metadata"]["name"]]}
    assert all(known[label] == [value] for label, value in flavor["spec"]["nodeLabels"].items())
    tolerated = {(each["key"], each["value"], each["effect"]) for each in flavor["spec"]["tolerations"]}
    assert {(each["key"], each["value"], each["effect"]) for each in pool["taints"]} <= tolerated
    [of_cpu_work] = [pools[name] for name in pools if {"karpenter.sh/nodepool": name} == cpu["spec"]["nodeLabels"]]
    assert "taints" not in of_cpu_work


def test_settings_that_cannot_work_stop_the_program_before_any_resource() -> None:
    settings = shipped("local")
    settings["teams"][0]["shares"] = {"l4-spot": 40}
    preview = Preview()

    with pytest.raises(SettingsError, match="add up to 42 GPUs, but its ceiling is 4"):
        declared("local", settings, preview)

    assert preview.declarations.made == {}
