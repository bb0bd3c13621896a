"""A container whose GPU request differs from its GPU limit."""

from flexspot.capacity.catalog.node_labels import GPU_RESOURCE
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.views import PodSet
from flexspot.policies.judging import Parameter, Parameters, Rule
from flexspot.policies.values.field import UNKNOWN


def judge(pods: PodSet, parameters: Parameters) -> Outcome:
    """Both must be there: a request alone is gpu-container-without-limit's, and a limit alone is its own request."""
    devices = parameters.texts("devices")
    hangs = both = False
    for name, container in pods.containers:
        requests, limits = container.at("resources", "requests"), container.at("resources", "limits")
        hangs |= not (requests.known and limits.known)
        for device in (key for key, _ in requests.parts().named if key.startswith(devices)):
            wanted, limit = requests.at(device).number(), limits.at(device)
            if limit.absent or not limits.known:
                continue
            given = limit.number()
            if wanted is UNKNOWN or given is UNKNOWN:
                hangs = True
            elif wanted != given:
                return fails(
                    f"{pods.where}: {name} requests {wanted} {device} but has a limit of {given}, which Kubernetes refuses",
                    f'set both to the same number, or set only resources.limits["{device}"]',
                    pods.where,
                )
            both = True
    if hangs:
        return undecided(f"{pods.where}: a request or a limit is not known yet")
    return PASSES if both else not_applicable("no container has both a request and a limit for a device")


RULE = Rule(
    code="FLX047",
    severity=Severity.HIGH,
    judge=judge,
    why="Devices cannot be overcommitted: the API server refuses such a pod, and a Job's controller keeps trying to create it.",
    remediation=f'Give resources.limits["{GPU_RESOURCE}"] only; Kubernetes takes the request from it.',
    link="https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/#using-device-plugins",
    sources=("k8s.io/kubernetes 1.36.1, pkg/apis/core/validation: resources that cannot be overcommitted.",),
    parameters=(
        Parameter(
            "devices",
            ("nvidia.com/", "amd.com/gpu", "google.com/tpu", "aws.amazon.com/neuron", "habana.ai/", "vpc.amazonaws.com/efa"),
            "Prefixes of resource names that are devices.",
        ),
    ),
)
