"""A ResourceQuota with a key that Kubernetes accepts but never enforces."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import ResourceQuota
from flexspot.policies.judging import Parameters, Rule

LIMITS, REQUESTS = "limits.", "requests."
DEVICES = ("nvidia.com/", "amd.com/", "aws.amazon.com/", "habana.ai/", "google.com/", "vpc.amazonaws.com/")


UNCOUNTED = f"{{at}} is never counted: devices are counted as {REQUESTS}{{resource}}"
UNCOUNTED_REMEDY = f"write {REQUESTS}{{resource}} instead"


def judge(quota: ResourceQuota, _: Parameters) -> Outcome:
    """Extended resources are counted under `requests.` alone: their limits equal their requests."""
    hard = quota.spec.at("hard").parts()
    for key, _value in hard.named:
        resource = key.removeprefix(LIMITS)
        if resource.startswith(DEVICES) and not key.startswith(REQUESTS):
            at = f'spec.hard["{key}"]'
            return fails(UNCOUNTED.format(at=at, resource=resource), UNCOUNTED_REMEDY.format(resource=resource), at)
    if not hard.complete:
        return undecided("spec.hard is not known yet")
    counted = [key for key, _ in hard.named if key.startswith(REQUESTS) and key.removeprefix(REQUESTS).startswith(DEVICES)]
    return PASSES if counted else not_applicable("it has no key for a device")


RULE = Rule(
    code="FLX010",
    severity=Severity.HIGH,
    judge=judge,
    why="A quota of limits.nvidia.com/gpu: 1 is accepted, but a pod with eight GPUs is still admitted: the namespace has no ceiling.",
    remediation="Give the quota as requests.nvidia.com/gpu, the one key under which Kubernetes counts GPUs.",
    link="https://kubernetes.io/docs/concepts/policy/resource-quotas/#resource-quota-for-extended-resources",
    sources=("Run against kube-apiserver 1.36.1: a pod with 8 GPUs is admitted under limits.nvidia.com/gpu: 1.",),
)
