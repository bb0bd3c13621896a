"""Defects in declarations of a shipped stack. Not a test.

Defects of one stack have no resource in common, so that one preview distinguishes them. For a rule without a defect here, its failing
fixtures are added to the stack instead. Both clouds have a row where they express the same thing differently.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from program_declarations import UNKNOWN, as_shipped

if TYPE_CHECKING:
    from collections.abc import Callable

    from program_declarations import Declarations


Resources = dict[str, tuple[str, dict[str, Any]]]
"""Type and inputs of each resource, by name."""


@dataclass(frozen=True)
class Defect:
    """One defect in a shipped stack, which otherwise keeps every rule."""

    rule: str
    stack: str
    on: str
    """The resource that the rule reports, which need not be the changed one."""
    plant: Callable[[Resources], Any]
    """Changes the inputs of the stack's resources."""

    def __str__(self) -> str:
        return f"{self.rule} in {self.stack}"


def with_sentinels(value: Any) -> Any:
    if isinstance(value, dict):
        return UNKNOWN if value == {"$unknown": True} else {key: with_sentinels(each) for key, each in value.items()}
    return [with_sentinels(each) for each in value] if isinstance(value, list) else value


def resources_of(stack: str) -> Resources:
    """Return the resources that the program declares for a shipped stack, without components."""
    return resources_in(as_shipped(stack))


def resources_in(declarations: Declarations) -> Resources:
    """Return the resources of any declarations, without components."""
    return {
        each.name: (each.type, copy.deepcopy(with_sentinels(each.inputs)))
        for each in declarations.made.values()
        if ":index:" not in each.type
    }


def inputs(made: Resources, name: str) -> Any:
    return made[name][1]


def spec(made: Resources, name: str) -> Any:
    return made[name][1]["spec"]


def untainted(made: Resources) -> None:
    node = inputs(made, POOL)["nodeConfig"] if "nodeConfig" in inputs(made, POOL) else spec(made, POOL)["template"]["spec"]
    node["taints"] = [each for each in node["taints"] if each["key"] != "nvidia.com/gpu"]


def one_long_document(made: Resources) -> None:
    """Put all of Karpenter's permissions into one policy."""
    document = json.loads(inputs(made, LIFECYCLE)["policy"])
    inputs(made, LIFECYCLE)["policy"] = json.dumps(document | {"Statement": document["Statement"] * 3})


POOL, CPU_POOL, FLAVOR = "l4-spot-node-pool", "other-work-node-pool", "queues-l4-spot"
QUEUE, LOCAL, RANGE, CLASS = "queues-research", "queues-research-local", "research-containers", "l4-spot-class-node-class"
QUOTA, CLUSTER, BUCKET, KARPENTER = "research-quota", "cluster-cluster", "checkpoints-bucket", "karpenter-release"
BLOCK, WORKER, LIFECYCLE = "datasets-public-access-block", "karpenter-nodes-worker-node", "karpenter-identity-node-lifecycle-policy"
LOWEST, LOW = "priorities-gpu-best-effort", "priorities-spot-workload-low"
GPUS, WHOLE_INTERNET = "requests.nvidia.com/gpu", ["0.0.0.0/0"]

PLANTS: dict[tuple[str, str, str], Callable[[Resources], Any]] = {
    ("gpu-pool-without-taint", "dev-gke", POOL): untainted,
    ("gpu-pool-without-taint", "dev-eks", POOL): untainted,
    ("queue-admits-no-namespace", "dev-eks", QUEUE): lambda made: spec(made, QUEUE).pop("namespaceSelector"),
    ("deprecated-kueue-api", "dev-eks", LOCAL): lambda made: inputs(made, LOCAL).update(apiVersion="kueue.x-k8s.io/v1beta1"),
    ("quota-key-never-enforced", "dev-eks", QUOTA): lambda made: spec(made, QUOTA)["hard"].update({"limits.nvidia.com/gpu": "4"}),
    ("gpu-key-in-limit-range", "dev-eks", RANGE): lambda made: spec(made, RANGE)["limits"][0]["default"].update({"nvidia.com/gpu": "1"}),
    ("ami-not-selected", "dev-eks", CLASS): lambda made: spec(made, CLASS).pop("amiSelectorTerms"),
    ("no-interruption-queue", "dev-eks", KARPENTER): lambda made: inputs(made, KARPENTER)["values"]["settings"].pop("interruptionQueue"),
    ("flavor-matches-no-pool", "dev-eks", FLAVOR): lambda made: spec(made, FLAVOR)["nodeLabels"].update({"karpenter.sh/nodepool": "gone"}),
    ("flavor-without-needed-toleration", "dev-gke", FLAVOR): lambda made: spec(made, FLAVOR).update(tolerations=[]),
    ("unbounded-node-pool", "dev-eks", CPU_POOL): lambda made: spec(made, CPU_POOL).pop("limits"),
    ("priority-below-scale-up", "dev-gke", LOWEST): lambda made: inputs(made, LOWEST).update(value=-100),
    ("preemptible-by-default-pods", "dev-eks", LOW): lambda made: inputs(made, LOW).update(value=-5),
    ("namespace-without-gpu-quota", "dev-gke", "research-namespace"): lambda made: spec(made, QUOTA)["hard"].pop(GPUS),
    ("public-control-plane", "dev-eks", CLUSTER): lambda made: inputs(made, CLUSTER)["vpcConfig"].update(publicAccessCidrs=WHOLE_INTERNET),
    ("public-control-plane", "dev-gke", CLUSTER): lambda made: inputs(made, CLUSTER).update(
        controlPlaneEndpointsConfig={}, privateClusterConfig={"enablePrivateNodes": True}
    ),
    ("checkpoint-bucket-in-other-region", "dev-gke", BUCKET): lambda made: inputs(made, BUCKET).update(location="EUROPE-WEST4"),
    ("checkpoint-bucket-in-other-region", "dev-eks", BUCKET): lambda made: inputs(made, BUCKET).update(region="eu-west-1"),
    ("public-bucket", "dev-eks", BLOCK): lambda made: inputs(made, BLOCK).pop("blockPublicPolicy"),
    ("identity-too-broad", "dev-eks", WORKER): lambda made: inputs(made, WORKER).update(
        policyArn="arn:aws:iam::aws:policy/AdministratorAccess"
    ),
    ("iam-document-too-long", "dev-eks", LIFECYCLE): one_long_document,
}
"""The change that plants each defect, by its rule, its stack and the resource that the rule reports."""

DEFECTS = [Defect(*about, plant) for about, plant in PLANTS.items()]


def planted(*defects: Defect) -> Resources:
    """Return the resources of the defects' common stack, with the defects."""
    (stack,) = {defect.stack for defect in defects}
    made = resources_of(stack)
    for defect in defects:
        defect.plant(made)
    return made
