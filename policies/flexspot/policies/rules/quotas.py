"""Rules about ResourceQuotas and LimitRanges of namespaces."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from flexspot.capacity.catalog.accelerators import ACCELERATORS, NVIDIA, Accelerator, kind_of_resource
from flexspot.capacity.values.verdict import NOT_APPLICABLE, PASSES, Outcome, Severity, Verdict, fails, undecided
from flexspot.policies.inventory.objects import LimitRange, LocalQueue, Namespace, ResourceQuota
from flexspot.policies.inventory.pod_gpus import GPU_PREFIXES, gpu_resources
from flexspot.policies.inventory.views import Inventory, PodSet
from flexspot.policies.judging import Level, Parameters, Rule
from flexspot.policies.queues import Share, gives_gpus, local_queues_of, share_of
from flexspot.policies.values.field import UNKNOWN, Tri, Unknown, any_of

# Keys of whole GPUs, slices of GPUs, and devices by class (dynamic resource allocation).
_OF_GPUS = ("requests.nvidia.com/", *(each.quota_key for each in ACCELERATORS))


_OF_DEVICES = ".deviceclass.resource.k8s.io/devices"


@dataclass(frozen=True)
class GpuQuotaBound:
    """Limits of a ResourceQuota on GPUs."""

    concerns_gpus: Tri
    """True if it limits GPUs in any form."""
    gpus: Mapping[Accelerator, Decimal | Unknown | None]
    """Number of whole GPUs of each kind. None: not limited."""


def read_quota(quota: ResourceQuota) -> GpuQuotaBound:
    """Return the limits of a ResourceQuota on GPUs, whichever pods it applies to."""
    hard = quota.spec.at("hard").parts()
    found = any(key.startswith(_OF_GPUS) or key.endswith(_OF_DEVICES) for key, _ in hard.named)
    amounts = {kind: quota.spec.at("hard", kind.quota_key).number() for kind in ACCELERATORS}
    return GpuQuotaBound(found or (False if hard.complete else UNKNOWN), amounts)


def is_of_some_pods(quota: ResourceQuota) -> bool:
    """Return whether the quota applies, or may apply, only to some pods of its namespace."""
    return not (quota.spec.at("scopes").absent and quota.spec.at("scopeSelector").absent)


def gpu_quotas_of(namespace: str, inventory: Inventory) -> list[GpuQuotaBound]:
    """Return the limits of the quotas that are certainly in the namespace."""
    return [read_quota(each) for each in _quotas_by_namespace(inventory).get(namespace, ())]


def has_unplaced_quotas(inventory: Inventory) -> bool:
    """Return whether there are ResourceQuotas whose namespace is not known yet."""
    return UNKNOWN in _quotas_by_namespace(inventory)


def _quotas_by_namespace(inventory: Inventory) -> Mapping[object, list[ResourceQuota]]:
    return inventory.by("namespace", ResourceQuota, lambda each: each.namespace)


@Rule(
    code="FLX054",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    why="Kueue limits only what goes through a queue: one Deployment, or a Job without a queue, can take every GPU.",
    remediation="Give each namespace with GPU work a ResourceQuota on requests.nvidia.com/gpu, or on the key of its device type.",
    link="https://kubernetes.io/docs/concepts/policy/resource-quotas/#resource-quota-for-extended-resources",
)
def namespace_without_gpu_quota(judged: Namespace | LocalQueue, _: Parameters, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    """A namespace with GPU work but without a GPU quota.

    A namespace in the input is judged itself. One that is not in the input is judged at the first of its queues.
    """
    of_queue = isinstance(judged, LocalQueue)
    name = judged.namespace if of_queue else judged.name.text()
    if not isinstance(name, str):
        return undecided("the name of the namespace is not known yet")
    if (
        name == "kube-system"
        or (of_queue and name in inventory.by("name", Namespace, lambda each: each.name.text()))
        or (of_queue and local_queues_of(name, inventory)[0] is not judged)
    ):
        return NOT_APPLICABLE
    uses_gpus = _uses_gpus(name, inventory)
    if uses_gpus is False:
        return NOT_APPLICABLE
    bounded = any_of(quota.concerns_gpus for quota in gpu_quotas_of(name, inventory))
    if bounded is True:
        return PASSES
    if UNKNOWN in (bounded, uses_gpus) or has_unplaced_quotas(inventory):
        return undecided(f"whether namespace {name} requests GPUs, or has a ResourceQuota for them, is not known yet")
    if not inventory.can_judge_missing(ResourceQuota):
        return undecided(f"no ResourceQuota is in the input; one for namespace {name} may be elsewhere")
    keys = _quota_keys(name, inventory)
    return fails(
        f"namespace {name} has GPU work but no ResourceQuota with {' or '.join(keys)}",
        f"add a ResourceQuota to {name} with spec.hard {' and '.join(keys)}: what its queues may give it, plus work outside queues",
    )


def _quota_keys(namespace: str, inventory: Inventory) -> list[str]:
    """Return the quota keys of the kinds of GPUs that the namespace's queues give and its pods request. Default: NVIDIA's key."""
    pods = (each for each in inventory.of(PodSet) if not each.serve_nodes and each.space == namespace)
    requested = {kind_of_resource(resource) for each in pods for resource in gpu_resources(each.pod)}
    kinds = [kind for kind in ACCELERATORS if kind in requested or gives_gpus(namespace, inventory, (kind,)) is True]
    return [kind.quota_key for kind in kinds or [NVIDIA]]


def _uses_gpus(namespace: str, inventory: Inventory) -> Tri:
    pods = inventory.once("namespaces of GPU pods", None, lambda: _namespaces_of_gpu_pods(inventory))
    anywhere = UNKNOWN if pods.get(UNKNOWN, False) is not False else False
    return any_of([gives_gpus(namespace, inventory), pods.get(namespace, False), anywhere])


def _namespaces_of_gpu_pods(inventory: Inventory) -> dict[object, Tri]:
    """Return whether pods request GPUs, by namespace. Pods whose namespace is not known yet are under UNKNOWN."""
    found: dict[object, list[Tri]] = {}
    for each in inventory.of(PodSet):
        if not each.serve_nodes:
            found.setdefault(each.space, []).append(each.requests_gpus)
    return {space: any_of(answers) for space, answers in found.items()}


@Rule(
    code="FLX055",
    severity=Severity.MEDIUM,
    why="Kueue does not know about ResourceQuotas: it admits the job and reserves quota for it, and the API server "
    "refuses its pods every time.",
    remediation="Set the namespace's quota to at least what its queues guarantee and can borrow.",
    link="https://kueue.sigs.k8s.io/docs/concepts/cohort/",
)
def quota_below_queue_share(quota: ResourceQuota, _: Parameters, inventory: Inventory) -> Outcome:
    """A ResourceQuota that allows a team less than its queues give it.

    Includes quota that can be borrowed, up to what the other members of the cohort own and lend.
    """
    bounded, space = {kind: gpus for kind, gpus in read_quota(quota).gpus.items() if gpus is not None}, quota.namespace
    if not bounded or is_of_some_pods(quota):
        return NOT_APPLICABLE
    if isinstance(space, Unknown):
        return undecided("its namespace is not known yet")
    if not local_queues_of(space, inventory):
        return NOT_APPLICABLE
    outcomes = [_of_kind(kind, gpus, space, share_of(space, inventory, kind)) for kind, gpus in bounded.items()]
    return max(outcomes, key=lambda each: _GRAVITY.index(each.verdict))


_GRAVITY = (Verdict.PASS, Verdict.UNKNOWN, Verdict.FAIL)


def _of_kind(kind: Accelerator, gpus: Decimal | Unknown, space: str, share: Share) -> Outcome:
    at = f'spec.hard["{kind.quota_key}"]'
    if isinstance(gpus, Unknown):
        return undecided(f"{at} is not known yet")
    if gpus < share.least:
        return fails(
            f"{at} is {gpus}, but the queues of namespace {space} can give it {share.least} {kind.noun}s, borrowed ones included",
            f"raise it to {share.least} plus what runs there without a queue, or lower nominalQuota and borrowingLimit of the queues",
            at,
        )
    if not share.complete:
        return undecided(
            f"how much the queues of namespace {space} can give is not known: a quota is not known, or a queue is not in the input"
        )
    return PASSES


LIMITS, REQUESTS = "limits.", "requests."


DEVICES = ("nvidia.com/", "amd.com/", "aws.amazon.com/", "habana.ai/", "google.com/", "vpc.amazonaws.com/")


UNCOUNTED = f"{{at}} is never counted: devices are counted as {REQUESTS}{{resource}}"


UNCOUNTED_REMEDY = f"write {REQUESTS}{{resource}} instead"


@Rule(
    code="FLX010",
    severity=Severity.HIGH,
    why="A quota of limits.nvidia.com/gpu: 1 is accepted, but a pod with eight GPUs is still admitted: the namespace has no ceiling.",
    remediation="Give the quota as requests.nvidia.com/gpu, the one key under which Kubernetes counts GPUs.",
    link="https://kubernetes.io/docs/concepts/policy/resource-quotas/#resource-quota-for-extended-resources",
    sources=("Run against kube-apiserver 1.36.1: a pod with 8 GPUs is admitted under limits.nvidia.com/gpu: 1.",),
)
def quota_key_never_enforced(quota: ResourceQuota, _: Parameters) -> Outcome:
    """A ResourceQuota with a key that Kubernetes accepts but never enforces.

    Extended resources are counted only under `requests.`, because their limits equal their requests.
    """
    hard = quota.spec.at("hard").parts()
    for key, _value in hard.named:
        resource = key.removeprefix(LIMITS)
        if resource.startswith(DEVICES) and not key.startswith(REQUESTS):
            at = f'spec.hard["{key}"]'
            return fails(UNCOUNTED.format(at=at, resource=resource), UNCOUNTED_REMEDY.format(resource=resource), at)
    if not hard.complete:
        return undecided("spec.hard is not known yet")
    counted = [key for key, _ in hard.named if key.startswith(REQUESTS) and key.removeprefix(REQUESTS).startswith(DEVICES)]
    return PASSES if counted else NOT_APPLICABLE


SECTIONS = ("default", "defaultRequest", "max", "min", "maxLimitRequestRatio")


GIVES, REFUSES = "gives GPUs to every container", "refuses every container without GPUs"


GPU_KEY = "{at} {effect} of the namespace, sidecars and init containers included"


GPU_KEY_REMEDY = "remove {at}"


@Rule(
    code="FLX011",
    severity=Severity.HIGH,
    why="With a default of one GPU, a CPU pod with a sidecar is charged two GPUs and fits on no CPU node.",
    remediation="Keep GPUs out of LimitRanges; a ResourceQuota on requests.nvidia.com/gpu and Kueue's queues bound them.",
    link="https://kubernetes.io/docs/concepts/policy/limit-range/",
    sources=("Run against kube-apiserver 1.36.1: each container, sidecar and init container gets the default.",),
)
def gpu_key_in_limit_range(limits: LimitRange, _: Parameters) -> Outcome:
    """A LimitRange that sets GPU values.

    Fails for any section: a default gives every container GPUs, and a maximum or minimum refuses every container without them.
    """
    items = limits.spec.at("limits").parts()
    undetermined = not items.complete
    for place, item in items.named:
        for section in SECTIONS:
            keys = item.at(section).parts()
            undetermined |= not keys.complete
            for key, _value in keys.named:
                if key.startswith(GPU_PREFIXES):
                    at = f'spec.limits[{place}].{section}["{key}"]'
                    effect = GIVES if section.startswith("default") else REFUSES
                    return fails(GPU_KEY.format(at=at, effect=effect), GPU_KEY_REMEDY.format(at=at), at)
    return undecided("spec.limits is not fully known yet") if undetermined else PASSES
