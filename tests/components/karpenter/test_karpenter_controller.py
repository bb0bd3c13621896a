"""KarpenterController: which charts it installs, in which order, and what it says to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
import pytest
import yaml
from chart_values import unknown_values
from karpenter_args import RELEASE, declared, parents_of, refusal
from pulumi.provider.experimental.analyzer import Analyzer

from components.karpenter.controller import KarpenterController, KarpenterControllerArgs
from lab.tools.build import family_named

if TYPE_CHECKING:
    from lab.tools.build import Tools

ENDPOINT = "https://0123456789ABCDEF.gr7.eu-west-1.eks.amazonaws.com"

CHART: dict[str, Any] = {
    "replicas": 2,
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "controller": {"resources": {}, "image": {"tag": "1.0.0"}},
    "settings": {"clusterName": "", "isolatedVPC": False},
    "terminationGracePeriodSeconds": None,
}
"""A chart's values, in small."""


def args(**changes: Any) -> KarpenterControllerArgs:
    arguments: KarpenterControllerArgs = {
        "cluster_name": pulumi.Output.from_input("training"),
        "cluster_endpoint": pulumi.Output.from_input(ENDPOINT),
        "queue_name": pulumi.Output.from_input("training"),
    }
    arguments.update(changes)  # pyrefly: ignore[no-matching-overload] -- what is wrong on purpose, too
    return arguments


def releases(**changes: Any) -> dict[str, dict[str, Any]]:
    return declared(lambda: KarpenterController("karpenter", args(**changes)))[0].of(RELEASE)


def values(**changes: Any) -> dict[str, Any]:
    return releases(**changes)["karpenter-release"]["values"]


def test_the_released_charts_are_installed_at_one_pinned_version_as_releases_that_fail_whole() -> None:
    found = releases()

    shared = {"version": "1.14.1", "namespace": "kube-system", "atomic": True, "timeout": 600}
    assert list(found) == ["karpenter-crds", "karpenter-release"]
    assert found["karpenter-crds"].items() >= {**shared, "chart": "oci://public.ecr.aws/karpenter/karpenter-crd"}.items()
    assert found["karpenter-release"].items() >= {**shared, "chart": "oci://public.ecr.aws/karpenter/karpenter"}.items()
    assert [each["name"] for each in found.values()] == ["karpenter-crd", "karpenter"]


def test_crds_come_from_their_own_chart_alone_because_helm_upgrades_none_in_another() -> None:
    assert [each["skipCrds"] for each in releases().values()] == [False, True]


def test_the_crds_are_there_before_the_controller() -> None:
    waits: dict[str, list[str]] = {}

    def note(resource: pulumi.ResourceTransformationArgs) -> None:
        awaited: Any = resource.opts.depends_on or []
        waits[resource.name] = [each._name for each in awaited]  # noqa: SLF001 -- the SDK has no other

    declared(lambda: KarpenterController("karpenter", args(), pulumi.ResourceOptions(transformations=[note])))

    assert waits["karpenter-release"] == ["karpenter-crds"]


def test_the_version_is_the_one_that_the_lab_rehearses_with() -> None:
    assert family_named("karpenter").version.removeprefix("v") == releases()["karpenter-release"]["version"]


def test_the_controller_knows_its_cluster_and_its_queue() -> None:
    settings = values()["settings"]

    assert (settings["clusterName"], settings["clusterEndpoint"], settings["interruptionQueue"]) == ("training", ENDPOINT, "training")
    assert settings["enableZonalShift"] is False


def test_every_feature_gate_is_written_out_and_only_reserved_capacity_and_node_repair_are_on() -> None:
    assert values()["settings"]["featureGates"] == {
        "nodeRepair": True,
        "nodeOverlay": False,
        "reservedCapacity": True,
        "spotToSpotConsolidation": False,
        "staticCapacity": False,
        "capacityBuffer": False,
    }


def test_broken_nodes_can_be_left_to_a_person() -> None:
    assert values(node_repair=False)["settings"]["featureGates"]["nodeRepair"] is False


def test_it_runs_on_system_nodes_and_never_on_nodes_of_its_own() -> None:
    found = values()

    assert found["nodeSelector"] == {"kubernetes.io/os": "linux", "flexspot.dev/system": "true"}
    assert found["tolerations"] == [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    [term] = found["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]}


def test_it_runs_as_the_account_that_its_identity_binds_with_what_it_may_use_written_down() -> None:
    found = values()

    assert found["serviceAccount"] == {"create": True, "name": "karpenter"}
    assert found["replicas"] == 2
    assert found["controller"] == {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}}


def test_no_image_is_named_so_that_the_charts_own_is_installed() -> None:
    assert "image" not in values()["controller"]


def test_copies_resources_zonal_shift_and_spot_to_spot_are_the_callers() -> None:
    found = values(replicas=3, cpu="2", memory="4Gi", zonal_shift=True, spot_to_spot_consolidation=True)

    assert found["replicas"] == 3
    assert found["controller"]["resources"]["requests"] == {"cpu": "2", "memory": "4Gi"}
    assert found["settings"]["enableZonalShift"] is True
    assert found["settings"]["featureGates"]["spotToSpotConsolidation"] is True


def test_its_output_is_the_version() -> None:
    _, outputs = declared(lambda: KarpenterController("karpenter", args()))

    assert outputs == {"version": "1.14.1"}


def test_its_children_are_its_own_and_named_after_it() -> None:
    parents, made = parents_of(lambda opts: KarpenterController("karpenter", args(), opts))

    assert parents == {"karpenter": None, "karpenter-crds": made, "karpenter-release": made}


@pytest.mark.parametrize("replicas", [0, -1])
def test_less_than_one_copy_is_refused_before_anything_is_registered(replicas: int) -> None:
    said, resources = refusal(lambda: KarpenterController("karpenter", args(replicas=replicas)))

    assert said == f"KarpenterController karpenter: replicas is {replicas}; it must be at least 1; leave it out for 2"
    assert resources == []


def test_pulumis_component_host_knows_which_arguments_are_optional() -> None:
    inputs = Analyzer("flexspot").analyze([KarpenterController])["component_definitions"]["KarpenterController"].inputs

    assert {name for name, each in inputs.items() if not each.optional} == {"clusterName", "clusterEndpoint", "queueName"}


@pytest.mark.parametrize(
    "said,unknown",
    [
        ({"replicas": 3.0, "settings": {"clusterName": "a"}}, []),
        ({"controller": {"resources": {"limits": {"cpu": "1"}}}, "terminationGracePeriodSeconds": 30}, []),
        ({"nodeSelector": {"flexspot.dev/system": "true"}}, []),
        ({"settings": {"clustername": "a"}}, ["settings.clustername"]),
        ({"setting": {"clusterName": "a"}}, ["setting"]),
        ({"settings": {"isolatedVPC": "false"}}, ["settings.isolatedVPC: text, the chart has true or false"]),
        ({"settings": "a"}, ["settings: text, the chart has a map"]),
        ({"replicas": True}, ["replicas: true or false, the chart has a number"]),
        ({"nodeSelector": ["a"]}, ["nodeSelector: a list, the chart has a map"]),
    ],
)
def test_a_value_that_a_chart_does_not_have_is_found(said: dict[str, Any], unknown: list[str]) -> None:
    assert unknown_values(said, CHART) == unknown


@pytest.mark.lab
def test_every_value_is_one_of_the_charts_and_no_gate_of_the_chart_is_left_to_chance(tools: Tools) -> None:
    """Of the chart in the Go module, whose values are those of 1.14.1 but for the stamp: its version and its image's tag say 1.13.0."""
    [path] = [path for path in tools.assets("karpenter-aws", "chart") if path.name == "values.yaml"]
    chart: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    ours = values(zonal_shift=True)

    assert unknown_values(ours, chart) == []
    assert ours["settings"]["featureGates"].keys() == chart["settings"]["featureGates"].keys()
    assert ours["tolerations"] == chart["tolerations"]
    assert ours["affinity"]["nodeAffinity"] == chart["affinity"]["nodeAffinity"]
    assert ours["nodeSelector"].items() >= chart["nodeSelector"].items()
