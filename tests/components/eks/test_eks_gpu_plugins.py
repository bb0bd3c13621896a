"""GpuPlugins: NVIDIA's device plugin where the image has none, AWS's EFA plugin where nodes have such interfaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from capacity.catalog.machines import Cloud, machines_of
from components.eks.addons import GpuPlugins, GpuPluginsArgs

RELEASE = "kubernetes:helm.sh/v3:Release"
COMPONENT = "flexspot:index:GpuPlugins"

Register = Callable[[Callable[[], object]], Any]


def args(**changes: Any) -> GpuPluginsArgs:
    arguments: GpuPluginsArgs = {"ami": "al2023@v20260903"}
    arguments.update(changes)  # pyrefly: ignore[no-matching-overload] -- what is wrong on purpose, too
    return arguments


def charts(register: Register, **changes: Any) -> dict[str, dict[str, Any]]:
    releases = register(lambda: GpuPlugins("plugins", args(**changes))).of(RELEASE)
    return {each["chart"]: each for each in releases}


def test_nodes_with_nvidia_gpus_get_the_plugin_before_anything_has_labelled_them(register: Register) -> None:
    [release] = charts(register).values()

    assert release["chart"] == "nvidia-device-plugin"
    assert release["version"] == "0.19.3"
    assert release["repositoryOpts"] == {"repo": "https://nvidia.github.io/k8s-device-plugin"}
    assert (release["name"], release["namespace"], release["atomic"]) == ("nvidia-device-plugin", "kube-system", True)
    [term] = release["values"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {
        "matchExpressions": [{"key": "karpenter.k8s.aws/instance-gpu-manufacturer", "operator": "In", "values": ["nvidia"]}],
    }


NEURON = "oci://public.ecr.aws/neuron/neuron-helm-chart"


def test_nodes_with_neuron_devices_get_the_plugin_of_their_own_and_nothing_else_of_its_chart(register: Register) -> None:
    release = charts(register, neuron=True)[NEURON]

    assert (release["name"], release["version"], release["namespace"]) == ("neuron-helm-chart", "1.10.0", "kube-system")
    [term] = release["values"]["devicePlugin"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    # Karpenter's AWS provider v1.14.1, pkg/providers/instancetype/types.go: on nodes with Neuron devices, and on no others.
    assert term == {
        "matchExpressions": [{"key": "karpenter.k8s.aws/instance-accelerator-manufacturer", "operator": "In", "values": ["aws"]}]
    }
    assert release["values"]["devicePlugin"]["tolerations"] == [{"operator": "Exists"}]
    assert [release["values"][name] for name in ("npd", "scheduler")] == [{"enabled": False}, {"enabled": False}]


def test_without_nvidias_gpus_there_is_no_plugin_of_nvidias(register: Register) -> None:
    assert list(charts(register, nvidia=False, neuron=True, ami="al2023@v20260903")) == [NEURON]
    assert list(charts(register, neuron=True, ami="bottlerocket@1.65.0")) == [NEURON], "its image has no plugin for them"
    assert charts(register, neuron=True, neuron_version="1.11.0")[NEURON]["version"] == "1.11.0"


@pytest.mark.parametrize("chart", ["nvidia-device-plugin", "aws-efa-k8s-device-plugin"])
def test_a_plugin_runs_on_every_tainted_node(chart: str, register: Register) -> None:
    assert charts(register, efa=True)[chart]["values"]["tolerations"] == [{"operator": "Exists"}]


def test_bottlerocket_brings_nvidias_plugin_itself_but_not_the_efa_plugin(register: Register) -> None:
    assert charts(register, ami="bottlerocket@1.65.0") == {}
    assert list(charts(register, ami="bottlerocket@1.65.0", efa=True)) == ["aws-efa-k8s-device-plugin"]


def test_the_efa_plugin_runs_on_nodes_that_were_launched_with_efa_interfaces_alone(register: Register) -> None:
    release = charts(register, efa=True)["aws-efa-k8s-device-plugin"]

    assert release["version"] == "v0.5.20"
    assert release["repositoryOpts"] == {"repo": "https://aws.github.io/eks-charts"}
    assert release["values"]["nodeSelector"] == {"vpc.amazonaws.com/efa.present": "true"}
    assert "image" not in release["values"]


def test_the_efa_plugin_knows_every_machine_of_the_catalog_that_has_efa(register: Register) -> None:
    labels = charts(register, efa=True)["aws-efa-k8s-device-plugin"]["values"]["supportedInstanceLabels"]

    assert labels["keys"] == ["node.kubernetes.io/instance-type"]
    assert set(labels["values"]) == {name for name, machine in machines_of(Cloud.AWS).items() if machine.efa_interfaces}
    assert "p5.48xlarge" in labels["values"]
    assert "g6.xlarge" not in labels["values"]


def test_the_efa_plugin_can_be_told_its_machines(register: Register) -> None:
    values = charts(register, efa=True, efa_machines=["p7.48xlarge", "p5.48xlarge"])["aws-efa-k8s-device-plugin"]["values"]

    assert values["supportedInstanceLabels"]["values"] == ["p5.48xlarge", "p7.48xlarge"]


def test_the_efa_plugins_image_can_come_from_elsewhere(register: Register) -> None:
    image = "123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn/eks/aws-efa-k8s-device-plugin"

    assert charts(register, efa=True, efa_image=image)["aws-efa-k8s-device-plugin"]["values"]["image"] == {"repository": image}


@pytest.mark.parametrize(
    "change,versions",
    [
        ({}, ["0.19.3", ""]),
        ({"efa": True}, ["0.19.3", "v0.5.20"]),
        ({"ami": "bottlerocket@1.65.0", "efa": True}, ["", "v0.5.20"]),
    ],
)
def test_releases_belong_to_the_component_and_their_versions_are_told(
    change: dict[str, Any], versions: list[str], register: Register
) -> None:
    made: list[GpuPlugins] = []
    told: list[str] = []
    parents: dict[str, pulumi.Resource | None] = {}

    def record(resource: pulumi.ResourceTransformationArgs) -> None:
        parents[resource.name] = resource.opts.parent

    def declare() -> None:
        pulumi.runtime.register_stack_transformation(record)
        made.append(GpuPlugins("plugins", args(**change)))
        pulumi.Output.all(made[0].nvidia_version, made[0].efa_version).apply(told.extend)

    registered = register(declare)

    children = [name for name, version in zip(("plugins-nvidia", "plugins-efa"), versions, strict=True) if version]
    assert told == versions
    assert registered.names(COMPONENT) == ["plugins"]
    assert parents == {"plugins": None} | dict.fromkeys(children, made[0])


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"ami": "ubuntu@22.04"}, "GpuPlugins plugins: ami is 'ubuntu@22.04'; it is al2023@RELEASE or bottlerocket@RELEASE; use one"),
        ({"efa_machines": ["p5.48xlarge"]}, "efa_machines is p5.48xlarge; there is no EFA plugin without efa; leave it out"),
        ({"efa": True, "efa_machines": []}, "efa_machines is \\[\\]; names no machine; leave it out"),
        ({"efa_image": "mirror/efa"}, "efa_image is mirror/efa; there is no EFA plugin without efa; set efa, or leave it out"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_registered(change: dict[str, Any], problem: str, register: Register) -> None:
    def declare() -> None:
        with pytest.raises(ValueError, match=problem):
            GpuPlugins("plugins", args(**change))

    assert register(declare).resources == []
