"""What a planted defect is, and those of the first rules. Not a test: planted_table has all rows, which tests judge on several surfaces."""

from __future__ import annotations

import copy
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
    """One defect in a shipped stack, all else in which keeps every rule.

    `plant` changes the inputs of the stack's resources. `on` is the resource that the rule tells of, which need not be the one
    that is changed.
    """

    rule: str
    stack: str
    on: str
    plant: Callable[[Resources], Any]

    def __str__(self) -> str:
        return f"{self.rule} in {self.stack}"


def with_sentinels(value: Any) -> Any:
    if isinstance(value, dict):
        return UNKNOWN if value == {"$unknown": True} else {key: with_sentinels(each) for key, each in value.items()}
    return [with_sentinels(each) for each in value] if isinstance(value, list) else value


def resources_of(stack: str) -> Resources:
    """What the program declares for a shipped stack, components left out."""
    return resources_in(as_shipped(stack))


def resources_in(declarations: Declarations) -> Resources:
    """The same of any declarations."""
    return {
        each.name: (each.type, copy.deepcopy(with_sentinels(each.inputs)))
        for each in declarations.made.values()
        if ":index:" not in each.type
    }


def inputs(made: Resources, name: str) -> Any:
    return made[name][1]


def spec(made: Resources, name: str) -> Any:
    return made[name][1]["spec"]


def gpu_pool(made: Resources) -> Any:
    """What a Karpenter pool says of its nodes."""
    return spec(made, POOL)["template"]["spec"]


def without(listed: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    return [each for each in listed if each["key"] != key]


def untainted(made: Resources, key: str = "nvidia.com/gpu") -> None:
    node = inputs(made, POOL)["nodeConfig"] if "nodeConfig" in inputs(made, POOL) else gpu_pool(made)
    node["taints"] = without(node["taints"], key)


def half_a_node(made: Resources) -> None:
    limits = spec(made, "a100-spot-node-pool")["limits"]
    limits |= {"nvidia.com/gpu": str(int(limits["nvidia.com/gpu"]) + 4), "cpu": "9999", "memory": "9Ei", "nodes": "999"}


POOL, FLAVOR, QUEUE, LOCAL = "l4-spot-node-pool", "queues-l4-spot", "queues-research", "queues-research-local"
QUOTA, RANGE, CLASS, FLEX = "research-quota", "research-containers", "l4-spot-class-node-class", "a100-flex-node-pool"

DEFECTS = [
    Defect("gpu-pool-without-taint", "dev-gke", POOL, untainted),
    Defect("gpu-pool-without-taint", "dev-eks", POOL, untainted),
    Defect("gpu-pool-without-limit", "dev-gke", POOL, lambda made: inputs(made, POOL)["autoscaling"].pop("totalMaxNodeCount")),
    Defect("gpu-pool-without-limit", "dev-eks", POOL, lambda made: spec(made, POOL).pop("limits")),
    Defect("queue-admits-no-namespace", "dev-eks", QUEUE, lambda made: spec(made, QUEUE).pop("namespaceSelector")),
    Defect(
        *("queue-resources-out-of-order", "dev-eks", QUEUE),
        lambda made: spec(made, QUEUE)["resourceGroups"][0]["flavors"][0]["resources"].reverse(),
    ),
    Defect("deprecated-kueue-api", "dev-eks", LOCAL, lambda made: inputs(made, LOCAL).update(apiVersion="kueue.x-k8s.io/v1beta1")),
    Defect("quota-key-never-enforced", "dev-eks", QUOTA, lambda made: spec(made, QUOTA)["hard"].update({"limits.nvidia.com/gpu": "4"})),
    Defect(
        "gpu-key-in-limit-range", "dev-eks", RANGE, lambda made: spec(made, RANGE)["limits"][0]["default"].update({"nvidia.com/gpu": "1"})
    ),
    Defect("spot-pool-without-taint", "dev-eks", POOL, lambda made: untainted(made, "flexspot.dev/capacity-type")),
    Defect("flex-start-pool-misconfigured", "prod-gke", FLEX, lambda made: inputs(made, FLEX)["management"].update(autoRepair=True)),
    Defect("gpu-limit-unreachable", "dev-eks", POOL, lambda made: spec(made, POOL)["limits"].update(cpu="16")),
    Defect("gpu-limit-not-multiple-of-machine", "prod-eks", "a100-spot-node-pool", half_a_node),
    Defect(
        *("gpu-count-not-offered-by-machine", "dev-gke", POOL),
        lambda made: inputs(made, POOL)["nodeConfig"]["guestAccelerators"][0].update(count=2),
    ),
    Defect("nodepool-references-missing-class", "dev-eks", POOL, lambda made: gpu_pool(made)["nodeClassRef"].update(name="gone")),
    Defect("ami-not-selected", "dev-eks", CLASS, lambda made: spec(made, CLASS).pop("amiSelectorTerms")),
    Defect("training-nodes-expire", "dev-eks", POOL, lambda made: gpu_pool(made).pop("expireAfter")),
    Defect(
        *("no-interruption-queue", "dev-eks", "karpenter-release"),
        lambda made: inputs(made, "karpenter-release")["values"]["settings"].pop("interruptionQueue"),
    ),
    Defect("queue-quota-above-capacity", "dev-eks", FLAVOR, lambda made: spec(made, POOL)["limits"].update({"nvidia.com/gpu": "4"})),
    Defect(
        "flavor-matches-no-pool", "dev-eks", FLAVOR, lambda made: spec(made, FLAVOR)["nodeLabels"].update({"karpenter.sh/nodepool": "gone"})
    ),
    Defect(
        *("flavor-label-known-only-after-boot", "dev-eks", FLAVOR),
        lambda made: spec(made, FLAVOR)["nodeLabels"].update({"nvidia.com/gpu.product": "NVIDIA-L4"}),
    ),
    Defect("unknown-field", "dev-eks", QUEUE, lambda made: spec(made, QUEUE).update(cohort="platform")),
    Defect("missing-owner-labels", "dev-gke", POOL, lambda made: inputs(made, POOL)["nodeConfig"].pop("resourceLabels")),
]


def planted(*defects: Defect) -> tuple[Resources, Resources]:
    """The resources of the stack without the defects and with them, which are all of one stack."""
    (stack,) = {defect.stack for defect in defects}
    before, after = resources_of(stack), resources_of(stack)
    for defect in defects:
        defect.plant(after)
    return before, after
