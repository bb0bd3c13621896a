"""The program over the shipped local stack: which resources it registers, and what they agree on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from capacity.values.errors import SettingsError
from infra.program import main

pytestmark = pytest.mark.slow

Register = Callable[[Callable[[], object]], Any]

STACKS = Path(__file__).resolve().parents[2] / "stacks"


def settings_of(stack: str) -> dict[str, Any]:
    return yaml.safe_load((STACKS / f"Pulumi.{stack}.yaml").read_text())["config"]["flexspot:platform"]


@pytest.fixture
def settings() -> dict[str, Any]:
    return settings_of("local")


def configured(settings: dict[str, Any]) -> Callable[[], None]:
    def declare() -> None:
        pulumi.runtime.set_all_config({"flexspot:platform": json.dumps(settings)})
        main()

    return declare


def test_the_local_stack_registers_every_object_of_its_plan(register: Register, settings: dict[str, Any]) -> None:
    registered = register(configured(settings))

    kinds = [token.rpartition(":")[2] for token, _, _ in registered.resources if token.startswith("kubernetes:")]
    assert {kind: kinds.count(kind) for kind in kinds} == {
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


def test_every_object_says_whose_it_is(register: Register, settings: dict[str, Any]) -> None:
    registered = register(configured(settings))

    objects = [inputs for token, _, inputs in registered.resources if token.startswith("kubernetes:")]
    wanted = {"flexspot.dev/environment": "local", "flexspot.dev/owner": "platform"}
    assert [each["metadata"]["name"] for each in objects if not wanted.items() <= each["metadata"]["labels"].items()] == []


def test_what_kueue_selects_is_what_karpenter_can_make(register: Register, settings: dict[str, Any]) -> None:
    registered = register(configured(settings))

    [cpu, flavor] = registered.of("kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor")
    pools = {each["metadata"]["name"]: each["spec"]["template"]["spec"] for each in registered.of("kubernetes:karpenter.sh/v1:NodePool")}
    pool = pools[flavor["metadata"]["name"]]
    # Karpenter itself puts the pool's name on its nodes, and knows that it will.
    known = {each["key"]: each["values"] for each in pool["requirements"]} | {"karpenter.sh/nodepool": [flavor["metadata"]["name"]]}
    assert all(known[label] == [value] for label, value in flavor["spec"]["nodeLabels"].items())
    tolerated = {(each["key"], each["value"], each["effect"]) for each in flavor["spec"]["tolerations"]}
    assert {(each["key"], each["value"], each["effect"]) for each in pool["taints"]} <= tolerated
    [of_cpu_work] = [pools[name] for name in pools if {"karpenter.sh/nodepool": name} == cpu["spec"]["nodeLabels"]]
    assert "taints" not in of_cpu_work
    assert "tolerations" not in cpu["spec"]


def test_settings_that_cannot_work_stop_the_program_before_any_resource(register: Register, settings: dict[str, Any]) -> None:
    settings["teams"][0]["shares"] = {"l4-spot": 40}

    def declare() -> None:
        with pytest.raises(SettingsError, match="add up to 42 GPUs, but its ceiling is 4"):
            configured(settings)()

    assert register(declare).resources == []
