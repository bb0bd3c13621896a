"""A container that requests a fraction of a GPU."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.pod_gpus import GPU_PREFIXES
from flexspot.policies.inventory.views import NO_GPUS, PodSet
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.values.field import UNKNOWN

_DEVICES = (*GPU_PREFIXES, "amd.com/gpu")


def judge(pods: PodSet, _: Parameters) -> Outcome:
    """Devices are whole: a quantity such as 0.5 or 500m is refused, in requests and in limits."""
    hangs = asks = False
    for name, container in pods.containers:
        for field in ("requests", "limits"):
            listed = container.at("resources", field).parts()
            hangs |= not listed.complete
            for device, amount in listed.named:
                if not device.startswith(_DEVICES):
                    continue
                number, asks = amount.number(), True
                if number is UNKNOWN:
                    hangs = True
                elif number is not None and number % 1:
                    at = f'{pods.where}: {field}["{device}"] of {name}'
                    return fails(f"{at} is {amount.text()}, but Kubernetes allocates whole devices only", at=f"{pods.where}.containers")
    if hangs:
        return undecided(f"{pods.where}: its device requests are not known yet")
    return PASSES if asks else not_applicable(NO_GPUS)


RULE = Rule(
    code="FLX069",
    severity=Severity.HIGH,
    judge=judge,
    why="The API server refuses the pod, and a Job or a Deployment with such pods creates none.",
    remediation="Request a whole GPU; or share one by time-slicing or MPS, where each pod requests 1; or request a slice of one (MIG).",
    link="https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/",
    sources=("https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#consuming-extended-resources",),
)
