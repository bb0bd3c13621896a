"""What tells Kubernetes of the GPUs and EFA interfaces of EKS nodes: NVIDIA's and AWS's device plugins, by their charts."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.helm.v3 import Release, ReleaseArgs, RepositoryOptsArgs

from capacity.catalog.machines import Cloud, machines_of
from capacity.catalog.node_labels import INSTANCE_TYPE_LABEL

NVIDIA_VERSION = "0.19.3"
"""NVIDIA's chart and plugin of 2026 (https://nvidia.github.io/k8s-device-plugin; the plugin of GPU operator pull request 2567)."""

EFA_VERSION = "v0.5.20"
"""AWS's chart, with plugin v0.5.13 (aws/eks-charts, stable/aws-efa-k8s-device-plugin/Chart.yaml)."""

NAMESPACE = "kube-system"

EFA_NODE_LABEL = ("vpc.amazonaws.com/efa.present", "true")
"""The label by which nodes say that they were launched with EFA interfaces; the NodePool gives it to them, as one of `node_labels`."""

_GPU_MANUFACTURER_LABEL = "karpenter.k8s.aws/instance-gpu-manufacturer"


class GpuPluginsArgs(TypedDict):
    """Arguments of GpuPlugins."""

    ami: str
    """Alias of the nodes' image, such as al2023@v20250807. On bottlerocket@... NVIDIA's plugin is part of the image."""

    efa: NotRequired[bool]
    """Whether nodes have EFA interfaces, for which pods ask as vpc.amazonaws.com/efa. Default: False."""

    efa_image: NotRequired[str | None]
    """Repository of the EFA plugin's image, without a tag. Default: the chart's, 602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/...

    That one is of the partition aws; others, and nodes that reach no other region, need one of their own.
    """


class GpuPlugins(pulumi.ComponentResource):
    """NVIDIA's device plugin on nodes that Karpenter launched with NVIDIA GPUs, and AWS's EFA plugin on nodes with EFA interfaces.

    Both tolerate every taint, or a pool with one of its own would have GPUs that no pod can ask for. NVIDIA's chart would wait for labels
    of Node Feature Discovery, which is not installed; here it looks for the label that Karpenter gives a GPU node before it boots. The EFA
    plugin ends at once on a node without EFA interfaces, so it runs on those with `EFA_NODE_LABEL` alone.

    Raises ValueError for an image that is neither AL2023 nor Bottlerocket, and for an `efa_image` without `efa`, before anything is
    registered. The charts were not installed here: their values are those of their repositories.
    """

    nvidia_version: pulumi.Output[str]
    """Version of NVIDIA's chart; empty on Bottlerocket, which needs none."""

    efa_version: pulumi.Output[str]
    """Version of the EFA plugin's chart; empty without EFA."""

    def __init__(self, name: str, args: GpuPluginsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        family = args["ami"].partition("@")[0]
        efa, efa_image = args.get("efa", False), args.get("efa_image")
        if family not in {"al2023", "bottlerocket"}:
            raise ValueError(f"GpuPlugins {name}: ami is {args['ami']!r}; it is al2023@RELEASE or bottlerocket@RELEASE; use one of these")
        if efa_image is not None and not efa:
            raise ValueError(f"GpuPlugins {name}: efa_image is {efa_image}; there is no EFA plugin without efa; set efa, or leave it out")
        super().__init__("flexspot:index:GpuPlugins", name, {**args}, opts)
        nvidia = family != "bottlerocket"
        if nvidia:
            self._release(f"{name}-nvidia", "nvidia-device-plugin", "https://nvidia.github.io/k8s-device-plugin", NVIDIA_VERSION, _nvidia())
        if efa:
            values = _efa() | ({} if efa_image is None else {"image": {"repository": efa_image}})
            self._release(f"{name}-efa", "aws-efa-k8s-device-plugin", "https://aws.github.io/eks-charts", EFA_VERSION, values)
        self.nvidia_version = pulumi.Output.from_input(NVIDIA_VERSION if nvidia else "")
        self.efa_version = pulumi.Output.from_input(EFA_VERSION if efa else "")
        self.register_outputs({"nvidia_version": self.nvidia_version, "efa_version": self.efa_version})

    def _release(self, name: str, chart: str, repository: str, version: str, values: dict[str, Any]) -> None:
        Release(
            name,
            ReleaseArgs(
                chart=chart,
                version=version,
                repository_opts=RepositoryOptsArgs(repo=repository),
                name=chart,
                namespace=NAMESPACE,
                # A release that fails half-way is taken back, so that the next try begins clean.
                atomic=True,
                timeout=600,
                values=values,
            ),
            pulumi.ResourceOptions(parent=self),
        )


def _nvidia() -> dict[str, Any]:
    on_gpus = {"matchExpressions": [{"key": _GPU_MANUFACTURER_LABEL, "operator": "In", "values": ["nvidia"]}]}
    return {
        # The chart's own terms, a list, are replaced by this one.
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [on_gpus]}}},
        "tolerations": [{"operator": "Exists"}],
    }


def _efa() -> dict[str, Any]:
    label, value = EFA_NODE_LABEL
    # The chart brings its own list of instance types, which is as old as the chart; this is the catalog's.
    machines = [machine.name for machine in machines_of(Cloud.AWS).values() if machine.efa_interfaces]
    return {
        "supportedInstanceLabels": {"keys": [INSTANCE_TYPE_LABEL], "values": machines},
        "nodeSelector": {label: value},
        "tolerations": [{"operator": "Exists"}],
    }
