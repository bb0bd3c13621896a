"""A namespace with GPU work but without a GPU quota."""

from flexspot.capacity.catalog.accelerators import ACCELERATORS, NVIDIA, kind_of_resource
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import LocalQueue, Namespace, ResourceQuota
from flexspot.policies.inventory.pod_gpus import gpu_resources
from flexspot.policies.inventory.views import Inventory, PodSet
from flexspot.policies.judging import Level, Parameters, Rule
from flexspot.policies.queues import gives_gpus, gpu_quotas_of, local_queues_of, quotas_somewhere
from flexspot.policies.values.field import UNKNOWN, Tri, any_of


def judge(judged: Namespace | LocalQueue, _: Parameters, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    """A namespace that was given is judged itself; one that was not is judged at the first of its queues."""
    of_queue = isinstance(judged, LocalQueue)
    name = judged.namespace if of_queue else judged.name.text()
    if not isinstance(name, str):
        return undecided("the name of the namespace is not known yet")
    if name == "kube-system" or (of_queue and name in inventory.by("name", Namespace, lambda each: each.name.text())):
        return not_applicable("the namespace is judged itself" if of_queue else "kube-system serves the nodes themselves")
    if of_queue and local_queues_of(name, inventory)[0] is not judged:
        return not_applicable("the namespace is judged at another of its queues")
    uses_gpus = _uses_gpus(name, inventory)
    if uses_gpus is False:
        return not_applicable("it has neither a queue that leads to GPUs nor pods that request them")
    bounded = any_of(quota.concerns_gpus for quota in gpu_quotas_of(name, inventory))
    if bounded is True:
        return PASSES
    if UNKNOWN in (bounded, uses_gpus) or quotas_somewhere(inventory):
        return undecided(f"whether namespace {name} requests GPUs, or has a ResourceQuota for them, is not known yet")
    if not inventory.tells(ResourceQuota):
        return undecided(f"no ResourceQuota is in the input; one for namespace {name} may be elsewhere")
    keys = _quota_keys(name, inventory)
    return fails(
        f"namespace {name} has GPU work but no ResourceQuota with {' or '.join(keys)}",
        f"add a ResourceQuota to {name} with spec.hard {' and '.join(keys)}: what its queues may give it, plus work outside queues",
    )


def _quota_keys(namespace: str, inventory: Inventory) -> list[str]:
    """The keys of quotas of the kinds that its queues lead to and its pods ask for; NVIDIA's where neither tells."""
    pods = (each for each in inventory.of(PodSet) if not each.exemption and each.space == namespace)
    asked = {kind_of_resource(resource) for each in pods for resource in gpu_resources(each.pod)}
    kinds = [kind for kind in ACCELERATORS if kind in asked or gives_gpus(namespace, inventory, (kind,)) is True]
    return [kind.quota_key for kind in kinds or [NVIDIA]]


def _uses_gpus(namespace: str, inventory: Inventory) -> Tri:
    pods = inventory.once("namespaces of GPU pods", None, lambda: _namespaces_of_gpu_pods(inventory))
    anywhere = UNKNOWN if pods.get(UNKNOWN, False) is not False else False
    return any_of([gives_gpus(namespace, inventory), pods.get(namespace, False), anywhere])


def _namespaces_of_gpu_pods(inventory: Inventory) -> dict[object, Tri]:
    """Whether pods ask for GPUs, by namespace; those whose namespace is not known yet under UNKNOWN."""
    found: dict[object, list[Tri]] = {}
    for each in inventory.of(PodSet):
        if not each.exemption:
            found.setdefault(each.space, []).append(each.asks_for_gpus)
    return {space: any_of(answers) for space, answers in found.items()}


RULE = Rule(
    code="FLX054",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    judge_among=judge,
    why="Kueue limits only what goes through a queue: one Deployment, or a Job without a queue, can take every GPU.",
    remediation="Give each namespace with GPU work a ResourceQuota on requests.nvidia.com/gpu, or on the key of its device type.",
    link="https://kubernetes.io/docs/concepts/policy/resource-quotas/#resource-quota-for-extended-resources",
)
