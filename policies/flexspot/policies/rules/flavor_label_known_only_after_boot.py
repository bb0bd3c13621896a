"""A ResourceFlavor that selects nodes by a label that they get only after they boot."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.node_offer import is_after_boot
from flexspot.policies.inventory.objects import ResourceFlavor
from flexspot.policies.inventory.views import Inventory, Pool
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.pools import pools_for
from flexspot.policies.values.field import UNKNOWN, any_of


def judge(flavor: ResourceFlavor, _: Parameters, inventory: Inventory) -> Outcome:
    """The label serves if a pool declares it, with its value, for its nodes: then the autoscaler knows it."""
    labels = flavor.spec.at("nodeLabels").parts()
    late = {key: value for key, value in labels.named if is_after_boot(key)}
    if not labels.complete:
        return undecided("spec.nodeLabels is not known yet")
    if not late:
        return not_applicable("it selects by no label that is set only after boot")
    declared = any_of(pool.offer.carries(late) for pool in pools_for(Pool, late, inventory))
    if declared is True:
        return PASSES
    if declared is UNKNOWN or not inventory.tells(Pool):
        return undecided("whether a pool declares its labels cannot be told from the input")
    key = next(iter(late))
    return fails(
        f"software on the node sets {key} after boot, and no pool declares it: a pool with zero nodes never scales up for it",
        "select by a label that the autoscaler knows, such as karpenter.k8s.aws/instance-gpu-name or cloud.google.com/gke-accelerator",
        f'spec.nodeLabels["{key}"]',
    )


RULE = Rule(
    code="FLX023",
    severity=Severity.HIGH,
    judge_among=judge,
    why="Kueue turns the label into a selector; the autoscaler sees that no machine has it and starts none, while the job holds its quota.",
    remediation="Use labels that the cloud or the pool sets before a node boots; nvidia.com/gpu.product is written later.",
    link="https://kueue.sigs.k8s.io/docs/concepts/resource_flavor/#resourceflavor-labels",
    sources=("https://github.com/NVIDIA/k8s-device-plugin/blob/main/docs/gpu-feature-discovery/README.md",),
)
