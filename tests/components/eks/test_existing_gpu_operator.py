"""ExistingGpuOperator: its ClusterPolicy is read, never created, and an operator that does not suit GPU pools is refused with a remedy."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest
from component_outputs import ReadCloud, outputs_of

from flexspot.components.eks.existing_cluster import ExistingGpuOperator, ExistingGpuOperatorArgs

TAINTS = [
    {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
    {"key": "flexspot.dev/capacity-type", "value": "spot", "effect": "NoSchedule"},
]

SHIPPED: dict[str, Any] = {
    "daemonsets": {"tolerations": [{"effect": "NoSchedule", "key": "nvidia.com/gpu", "operator": "Exists"}]},
    "dcgmExporter": {"enabled": True},
    "devicePlugin": {"enabled": True},
}
"""The chart's defaults, reduced to the parts that are read: deployments/gpu-operator/tests/__snapshot__/clusterpolicy_test.yaml.snap of
NVIDIA/gpu-operator at 25dba040, read 2026-11-26."""


def policy(*tolerations: dict[str, str], **changes: Any) -> dict[str, Any]:
    return {"metadata": {"name": "cluster-policy"}, "spec": SHIPPED | {"daemonsets": {"tolerations": [*tolerations]}} | changes}


def arguments(**changes: Any) -> ExistingGpuOperatorArgs:
    return {"taints": TAINTS, "dcgm_exporter": True} | changes  # pyrefly: ignore[bad-return] -- a test's own


def seen(found: dict[str, Any] | None, **changes: Any) -> dict[str, Any]:
    cloud = ReadCloud(None if found is None else lambda _: found)
    outputs = outputs_of(cloud, lambda: ExistingGpuOperator("gpu-operator", arguments(**changes)), preview=cloud.is_preview)
    assert cloud.read == [("kubernetes:nvidia.com/v1:ClusterPolicy", "cluster-policy")]
    assert cloud.made == ["flexspot:index:ExistingGpuOperator"]
    return outputs


EVERYWHERE = {"operator": "Exists"}


@pytest.mark.parametrize(
    "tolerations",
    [
        [EVERYWHERE],
        [{"key": "nvidia.com/gpu", "operator": "Exists"}, {"key": "flexspot.dev/capacity-type", "value": "spot", "effect": "NoSchedule"}],
        [{"operator": "Exists", "effect": "NoSchedule"}],
    ],
)
def test_an_operator_whose_daemons_tolerate_every_taint_is_accepted(tolerations: list[dict[str, str]]) -> None:
    assert seen(policy(*tolerations))["policy"] == "cluster-policy"


def test_the_charts_default_tolerations_leave_spot_nodes_without_gpus_and_are_refused() -> None:
    with pytest.raises(
        pulumi.RunError,
        match=r"ExistingGpuOperator gpu-operator: its daemons do not tolerate flexspot\.dev/capacity-type=spot:NoSchedule: "
        r".*daemonsets\.tolerations, and node-feature-discovery\.worker\.tolerations",
    ):
        seen({"metadata": {"name": "cluster-policy"}, "spec": SHIPPED})


@pytest.mark.parametrize(
    "tolerations",
    [
        [{"key": "flexspot.dev/capacity-type", "value": "on-demand"}, {"key": "nvidia.com/gpu", "operator": "Exists"}],
        [{"operator": "Exists", "effect": "NoExecute"}],
    ],
)
def test_another_value_or_effect_is_not_tolerated(tolerations: list[dict[str, str]]) -> None:
    with pytest.raises(pulumi.RunError, match="do not tolerate"):
        seen(policy(*tolerations))


def test_a_required_part_that_is_off_is_refused() -> None:
    off = policy(EVERYWHERE, devicePlugin={"enabled": False}, dcgmExporter={"enabled": False})

    with pytest.raises(pulumi.RunError, match=r"devicePlugin\.enabled\n.*dcgmExporter\.enabled, or set measurement\.dcgm_exporter: false"):
        seen(off)
    with pytest.raises(pulumi.RunError) as refused:
        seen(off, dcgm_exporter=False)
    assert "dcgmExporter" not in str(refused.value)


def test_offline_nothing_is_refused() -> None:
    assert seen(None)["policy"] == "cluster-policy"
