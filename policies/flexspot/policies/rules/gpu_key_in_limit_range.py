"""A LimitRange that sets GPU values."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.objects import LimitRange
from flexspot.policies.inventory.pod_gpus import GPU_PREFIXES
from flexspot.policies.judging import Parameters, Rule

SECTIONS = ("default", "defaultRequest", "max", "min", "maxLimitRequestRatio")
DEVICES = GPU_PREFIXES


GIVES, REFUSES = "gives GPUs to every container", "refuses every container without GPUs"
GPU_KEY = "{at} {effect} of the namespace, sidecars and init containers included"
GPU_KEY_REMEDY = "take {at} away"


def judge(limits: LimitRange, _: Parameters) -> Outcome:
    """Any section: a default hands GPUs out, and a maximum or minimum refuses every container that has none."""
    items = limits.spec.at("limits").parts()
    hangs = not items.complete
    for place, item in items.named:
        for section in SECTIONS:
            keys = item.at(section).parts()
            hangs |= not keys.complete
            for key, _value in keys.named:
                if key.startswith(DEVICES):
                    at = f'spec.limits[{place}].{section}["{key}"]'
                    effect = GIVES if section.startswith("default") else REFUSES
                    return fails(GPU_KEY.format(at=at, effect=effect), GPU_KEY_REMEDY.format(at=at), at)
    return undecided("spec.limits is not fully known yet") if hangs else PASSES


RULE = Rule(
    code="FLX011",
    severity=Severity.HIGH,
    judge=judge,
    why="With a default of one GPU, a CPU pod with a sidecar is charged two GPUs and fits on no CPU node.",
    remediation="Keep GPUs out of LimitRanges; a ResourceQuota on requests.nvidia.com/gpu and Kueue's queues bound them.",
    link="https://kubernetes.io/docs/concepts/policy/limit-range/",
    sources=("Run against kube-apiserver 1.36.1: each container, sidecar and init container gets the default.",),
)
