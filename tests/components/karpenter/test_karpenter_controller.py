"""KarpenterController: its charts, their order and their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
import pytest
import yaml
from chart_values import unknown_values
from karpenter_args import RELEASE, declared

from flexspot.components.karpenter.controller import KarpenterController, KarpenterControllerArgs
from flexspot.lab.tools.build import family_named

if TYPE_CHECKING:
    from component_types import Refusal

    from flexspot.lab.tools.build import Tools

ENDPOINT = "https://0123456789ABCDEF.gr7.eu-west-1.eks.amazonaws.com"


def args(**changes: Any) -> KarpenterControllerArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "cluster_name": pulumi.Output.from_input("training"),
        "cluster_endpoint": pulumi.Output.from_input(ENDPOINT),
        "queue_name": pulumi.Output.from_input("training"),
    } | changes


def releases(**changes: Any) -> dict[str, dict[str, Any]]:
    return declared(lambda: KarpenterController("karpenter", args(**changes)))[0].of(RELEASE)


def values(**changes: Any) -> dict[str, Any]:
    return releases(**changes)["karpenter-release"]["values"]


def test_the_charts_are_pinned_and_atomic_and_crds_have_a_separate_chart_because_helm_upgrades_none_in_another() -> None:
    found = releases()

    shared = {"version": "1.14.1", "namespace": "kube-system", "atomic": True, "timeout": 600}
    charts = [("karpenter-crds", "karpenter-crd", False), ("karpenter-release", "karpenter", True)]
    assert list(found) == [name for name, _, _ in charts]
    for name, chart, skips in charts:
        own = {"name": chart, "chart": f"oci://public.ecr.aws/karpenter/{chart}", "skipCrds": skips}
        assert found[name].items() >= {**shared, **own}.items()


def test_it_runs_on_system_nodes_as_its_service_account_with_its_limits_and_every_feature_gate() -> None:
    found = values()

    assert found["serviceAccount"] == {"create": True, "name": "karpenter"}
    assert found["replicas"] == 2
    # No image is named, so that the chart's own is installed.
    assert found["controller"] == {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}}
    assert found["nodeSelector"] == {"kubernetes.io/os": "linux", "flexspot.dev/system": "true"}
    assert found["tolerations"] == [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    [term] = found["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]}
    assert found["settings"]["featureGates"] == {
        "nodeRepair": True,
        "nodeOverlay": False,
        "reservedCapacity": True,
        "spotToSpotConsolidation": False,
        "staticCapacity": False,
        "capacityBuffer": False,
    }


def test_the_crds_exist_before_the_controller() -> None:
    waits: dict[str, list[str]] = {}

    def note(resource: pulumi.ResourceTransformationArgs) -> None:
        awaited: Any = resource.opts.depends_on or []
        waits[resource.name] = [each._name for each in awaited]  # noqa: SLF001 -- the SDK has no other

    declared(lambda: KarpenterController("karpenter", args(), pulumi.ResourceOptions(transformations=[note])))

    assert waits["karpenter-release"] == ["karpenter-crds"]


def test_the_version_is_the_labs() -> None:
    assert family_named("karpenter").version.removeprefix("v") == releases()["karpenter-release"]["version"]


def test_the_controller_knows_its_cluster_and_its_queue_and_its_output_is_the_version() -> None:
    aws, outputs = declared(lambda: KarpenterController("karpenter", args()))

    settings = aws.of(RELEASE)["karpenter-release"]["values"]["settings"]
    assert outputs == {"version": "1.14.1"}
    assert (settings["clusterName"], settings["clusterEndpoint"], settings["interruptionQueue"]) == ("training", ENDPOINT, "training")
    assert settings["enableZonalShift"] is False


def test_replicas_resources_and_node_repair_can_be_set() -> None:
    found = values(replicas=3, cpu="2", memory="4Gi", node_repair=False)

    assert found["replicas"] == 3
    assert found["controller"]["resources"]["requests"] == {"cpu": "2", "memory": "4Gi"}
    assert found["settings"]["featureGates"]["nodeRepair"] is False


def test_fewer_than_one_replica_is_refused_before_anything_is_registered(refusal: Refusal) -> None:
    assert "replicas (is 0): must be at least 1; leave it out for 2" in refusal(KarpenterController, "karpenter", args(replicas=0))


@pytest.mark.lab
def test_every_value_is_one_of_the_charts_and_every_feature_gate_is_set(tools: Tools) -> None:
    """The chart in the Go module has the values of 1.14.1, except that its version and its image's tag are 1.13.0."""
    [path] = [path for path in tools.assets("karpenter-aws", "chart") if path.name == "values.yaml"]
    chart: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    ours = values()

    assert unknown_values(ours, chart) == []
    assert ours["settings"]["featureGates"].keys() == chart["settings"]["featureGates"].keys()
    assert ours["tolerations"] == chart["tolerations"]
    assert ours["affinity"]["nodeAffinity"] == chart["affinity"]["nodeAffinity"]
    assert ours["nodeSelector"].items() >= chart["nodeSelector"].items()
