"""GpuPlugins: NVIDIA's device plugin for images without one, and AWS's plugins for nodes with Neuron devices or EFA interfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.components.eks.addons import GpuPlugins, GpuPluginsArgs

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register

RELEASE = "kubernetes:helm.sh/v3:Release"


def args(**changes: Any) -> GpuPluginsArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {"ami": "al2023@v20260903"} | changes


def charts(register: Register, **changes: Any) -> dict[str, dict[str, Any]]:
    releases = register(lambda: GpuPlugins("plugins", args(**changes))).of(RELEASE)
    return {each["chart"]: each for each in releases}


@pytest.mark.parametrize(
    "chart,version,repository",
    [
        ("nvidia-device-plugin", "0.19.3", "https://nvidia.github.io/k8s-device-plugin"),
        ("aws-efa-k8s-device-plugin", "v0.5.20", "https://aws.github.io/eks-charts"),
    ],
)
def test_a_plugin_is_pinned_and_runs_on_every_tainted_node_with_its_devices(
    chart: str, version: str, repository: str, register: Register
) -> None:
    release = charts(register, efa=True)[chart]

    assert (release["version"], release["repositoryOpts"], release["namespace"]) == (version, {"repo": repository}, "kube-system")
    assert release["atomic"] is True
    values = release["values"]
    assert values["tolerations"] == [{"operator": "Exists"}]
    if chart == "nvidia-device-plugin":
        [term] = values["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        [label] = term["matchExpressions"]
        # Karpenter sets it before anything else has labelled the node.
        assert label == {"key": "karpenter.k8s.aws/instance-gpu-manufacturer", "operator": "In", "values": ["nvidia"]}
    else:
        assert values["nodeSelector"] == {"vpc.amazonaws.com/efa.present": "true"}
        assert "image" not in values


NEURON = "oci://public.ecr.aws/neuron/neuron-helm-chart"


def test_nodes_with_neuron_devices_get_their_plugin_and_no_other_part_of_its_chart(register: Register) -> None:
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


def test_without_nvidia_gpus_nvidias_plugin_is_not_installed(register: Register) -> None:
    assert list(charts(register, nvidia=False, neuron=True, ami="al2023@v20260903")) == [NEURON]
    assert list(charts(register, neuron=True, ami="bottlerocket@1.65.0")) == [NEURON], "its image has no plugin for them"
    assert charts(register, neuron=True, neuron_version="1.11.0")[NEURON]["version"] == "1.11.0"


def test_bottlerocket_includes_nvidias_plugin_but_not_the_efa_plugin(register: Register) -> None:
    assert charts(register, ami="bottlerocket@1.65.0") == {}
    assert list(charts(register, ami="bottlerocket@1.65.0", efa=True)) == ["aws-efa-k8s-device-plugin"]


def test_the_efa_plugin_knows_every_machine_of_the_catalog_that_has_efa(register: Register) -> None:
    labels = charts(register, efa=True)["aws-efa-k8s-device-plugin"]["values"]["supportedInstanceLabels"]

    assert labels["keys"] == ["node.kubernetes.io/instance-type"]
    assert set(labels["values"]) == {name for name, machine in machines_of(Vendor.AWS).items() if machine.efa_interfaces}
    assert "p5.48xlarge" in labels["values"]
    assert "g6.xlarge" not in labels["values"]


def test_the_efa_plugins_machines_can_be_set(register: Register) -> None:
    values = charts(register, efa=True, efa_machines=["p7.48xlarge", "p5.48xlarge"])["aws-efa-k8s-device-plugin"]["values"]

    assert values["supportedInstanceLabels"]["values"] == ["p5.48xlarge", "p7.48xlarge"]


@pytest.mark.parametrize(
    "change,versions",
    [
        ({"efa": True}, {"nvidia_version": "0.19.3", "efa_version": "v0.5.20"}),
        ({"ami": "bottlerocket@1.65.0"}, {"nvidia_version": "", "efa_version": ""}),
    ],
)
def test_the_versions_of_its_releases_are_its_outputs(change: dict[str, Any], versions: dict[str, str], outputs: Outputs) -> None:
    assert outputs(lambda: GpuPlugins("plugins", args(**change))).items() >= versions.items()


def test_the_efa_plugins_image_can_come_from_elsewhere(register: Register) -> None:
    image = "123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn/eks/aws-efa-k8s-device-plugin"

    assert charts(register, efa=True, efa_image=image)["aws-efa-k8s-device-plugin"]["values"]["image"] == {"repository": image}


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"ami": "ubuntu@22.04"}, "GpuPlugins plugins: ami (is 'ubuntu@22.04'): must be al2023@RELEASE or bottlerocket@RELEASE; use one"),
        ({"efa_machines": ["p5.48xlarge"]}, "efa_machines (is p5.48xlarge): there is no EFA plugin without efa; leave it out"),
        ({"efa": True, "efa_machines": []}, "efa_machines (is []): names no machine; leave it out"),
        ({"efa_image": "mirror/efa"}, "efa_image (is mirror/efa): there is no EFA plugin without efa; set efa, or leave it out"),
    ],
)
def test_contradictory_arguments_are_refused_before_anything_is_registered(change: dict[str, Any], problem: str, refusal: Refusal) -> None:
    assert problem in refusal(GpuPlugins, "plugins", args(**change))
