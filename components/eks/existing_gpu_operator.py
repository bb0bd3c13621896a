"""NVIDIA's GPU operator that somebody else runs, on a cluster of theirs."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from collections.abc import Iterator
from typing import Any, NotRequired, TypedDict

import pulumi

from components.answers import ReadObject, answered
from components.shared_args import NodeTaint

POLICY, NAME = "nvidia.com/v1:ClusterPolicy", "cluster-policy"
"""What the operator goes by, of which its chart makes one (deployments/gpu-operator/templates/clusterpolicy.yaml)."""


class ExistingGpuOperatorArgs(TypedDict):
    """Arguments of ExistingGpuOperator."""

    taints: list[NodeTaint]
    """All taints of nodes with NVIDIA GPUs."""

    dcgm_exporter: NotRequired[bool]
    """Whether its DCGM exporter is required. Default: False."""


def problems(args: ExistingGpuOperatorArgs, spec: dict[str, Any] | None) -> Iterator[str]:
    """What pools cannot do with, each with the value of its chart that fixes it; nothing of an operator that nobody has read."""
    if spec is None:
        return
    if not _enabled(spec, "devicePlugin"):
        yield "its device plugin is off, and no node would have a GPU that a pod can ask for; its owner sets devicePlugin.enabled"
    if args.get("dcgm_exporter") and not _enabled(spec, "dcgmExporter"):
        yield (
            "its DCGM exporter is off, and nothing would tell how busy GPUs are; its owner sets dcgmExporter.enabled, or say "
            "measurement.dcgm_exporter: false"
        )
    tolerated: list[dict[str, str]] = (spec.get("daemonsets") or {}).get("tolerations") or []
    if left := [f"{each['key']}={each['value']}:{each['effect']}" for each in args["taints"] if not _tolerates(tolerated, each)]:
        yield (
            f"its daemons do not tolerate {', '.join(left)}: nodes with these taints would have no GPU that a pod can ask for; its owner "
            "sets daemonsets.tolerations, and node-feature-discovery.worker.tolerations, to [{operator: Exists}]"
        )


def _enabled(spec: dict[str, Any], part: str) -> bool:
    """Parts are on unless it says otherwise (api/nvidia/v1/clusterpolicy_types.go, IsEnabled)."""
    return (spec.get(part) or {}).get("enabled") is not False


def _tolerates(tolerations: list[dict[str, str]], taint: NodeTaint) -> bool:
    """Whether one of them tolerates a taint (k8s.io/api/core/v1, Toleration.ToleratesTaint)."""
    return any(
        each.get("effect") in {None, "", taint["effect"]}
        and each.get("key") in ({None, "", taint["key"]} if each.get("operator") == "Exists" else {taint["key"]})
        and (each.get("operator") == "Exists" or each.get("value", "") == taint["value"])
        for each in tolerations
    )


class ExistingGpuOperator(pulumi.ComponentResource):
    """An existing GPU operator, which is only read and never changed: it provides the device plugin, the DCGM exporter and GPU labels.

    After reading its ClusterPolicy, also in a preview, the run ends with pulumi.RunError and one line per problem if it does not suit the
    pools. If there is no ClusterPolicy `cluster-policy`, the provider ends the run. The tolerations of Node Feature Discovery are not in
    the ClusterPolicy, and are not checked.
    """

    policy: pulumi.Output[str]
    """The name of its ClusterPolicy, known once it was found in order."""

    def __init__(self, name: str, args: ExistingGpuOperatorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flexspot:index:ExistingGpuOperator", name, {**args}, opts)
        read = ReadObject(f"{name}-policy", POLICY, NAME, pulumi.ResourceOptions(parent=self))

        def in_order(spec: dict[str, Any] | None) -> str:
            if told := [f"ExistingGpuOperator {name}: {each}" for each in problems(args, spec)]:
                raise pulumi.RunError("\n".join(told))
            return NAME

        self.policy = answered(read.spec, lambda spec: spec).apply(in_order)
        self.register_outputs({"policy": self.policy})
