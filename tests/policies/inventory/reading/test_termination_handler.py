"""Settings of AWS's Node Termination Handler, in its chart and in its container."""

from __future__ import annotations

from typing import Any

import pytest
from manifests import manifest, views

from flexspot.policies.inventory.objects import TerminationHandler
from flexspot.policies.values.field import UNKNOWN, Tri

NAMES = {
    "ENABLE_SQS_TERMINATION_DRAINING": "enableSqsTerminationDraining",
    "ENABLE_SPOT_INTERRUPTION_DRAINING": "enableSpotInterruptionDraining",
    "ENABLE_REBALANCE_DRAINING": "enableRebalanceDraining",
    "CHECK_TAG_BEFORE_DRAINING": "checkTagBeforeDraining",
}

CASES: list[tuple[dict[str, str], bool]] = [
    ({}, True),
    ({"ENABLE_SPOT_INTERRUPTION_DRAINING": "false"}, False),
    ({"ENABLE_SPOT_INTERRUPTION_DRAINING": "false", "ENABLE_REBALANCE_DRAINING": "true"}, True),
    ({"ENABLE_SQS_TERMINATION_DRAINING": "true"}, False),
    ({"ENABLE_SQS_TERMINATION_DRAINING": "true", "CHECK_TAG_BEFORE_DRAINING": "false"}, True),
]


def by_chart(**inputs: Any) -> TerminationHandler:
    chart = "oci://public.ecr.aws/aws-ec2/helm/aws-node-termination-handler"
    [found] = views(TerminationHandler, ("kubernetes:helm.sh/v3:Release", {"chart": chart, **inputs}))
    return found


def by_container(**container: Any) -> TerminationHandler:
    containers = [{"image": "public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.25.1", **container}]
    pod = {"nodeSelector": {"pool": "spot"}, "containers": containers}
    [found] = views(TerminationHandler, manifest("apps/v1", "DaemonSet", {"template": {"spec": pod}}))
    return found


@pytest.mark.parametrize("variables,drains", CASES)
def test_chart_and_container_are_read_alike(variables: dict[str, str], *, drains: Tri) -> None:
    env = [{"name": name, "value": value} for name, value in variables.items()]
    values = {NAMES[name]: value == "true" for name, value in variables.items()}

    assert by_container(env=env).drains is drains
    assert by_chart(values=values).drains is drains


def test_settings_that_are_written_elsewhere_are_unknown() -> None:
    elsewhere = [{"name": "ENABLE_SPOT_INTERRUPTION_DRAINING", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}]

    assert by_container(env=elsewhere).drains is UNKNOWN
    assert by_container(envFrom=[{"configMapRef": {"name": "a"}}]).drains is UNKNOWN
    assert by_chart(valueYamlFiles=["values.yaml"]).drains is UNKNOWN


def test_the_most_specific_selector_of_the_chart_counts() -> None:
    selectors = {"nodeSelector": {"a": "b"}, "linuxNodeSelector": {"c": "d"}}

    assert by_chart(values=selectors).selector.value == {"c": "d"}
    assert by_chart(values={}).selector.absent
    assert not by_chart(valueYamlFiles=["values.yaml"]).selector.known
    assert by_container().selector.value == {"pool": "spot"}
