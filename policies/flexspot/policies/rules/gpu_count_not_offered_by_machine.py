"""A number of GPUs that the machine type does not offer."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.node_offer import machines_of
from flexspot.policies.inventory.objects import KarpenterNodePool
from flexspot.policies.inventory.views import GkeNodePool
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.pools import GPU_COUNT_LABELS, gpu_machines, requirements_of
from flexspot.policies.values.field import UNKNOWN, Field


def judge(pool: GkeNodePool | KarpenterNodePool, _: Parameters) -> Outcome:
    """On GKE machine and count are written side by side; Karpenter has a requirement on the count among those on the machine."""
    return _gke(pool) if isinstance(pool, GkeNodePool) else _karpenter(pool.spec)


def _gke(view: GkeNodePool) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    node = view.pool.at("nodeConfig")
    accelerators = node.at("guestAccelerators").parts()
    if node.known and accelerators.complete and not accelerators.fields:
        return not_applicable("it has no accelerator")
    name = node.at("machineType").text()
    if name is UNKNOWN or not node.known or not accelerators.complete:
        return undecided("its machine type, or its accelerators, are not known yet")
    machine, written = machines_of("gcp").get(str(name)), accelerators.fields[0]
    if machine is None or not machine.gpu:
        return not_applicable("its machine type is not in the catalog, or has no GPUs there")
    gpu, count = written.at("type").text(), written.at("count").number()
    attached = name.startswith("n1-") if isinstance(name, str) else False
    at = f"{view.where}nodeConfig.{view.accelerators_field}"
    if isinstance(gpu, str) and gpu != machine.gpu:
        if attached:
            return not_applicable(f"the catalog does not list {gpu} for {name}")
        return fails(f"{at} requests {gpu}, but a {name} has {machine.gpu}", f"use type {machine.gpu}, or another machine type", at)
    if count is UNKNOWN or (gpu is UNKNOWN and attached):
        return undecided(f"{at} is not known yet")
    if count in {*machine.gpu_counts, 0}:
        return PASSES
    allowed = " or ".join(map(str, machine.gpu_counts))
    return fails(
        f"{at} requests {count} {machine.gpu}, but a {name} has {allowed}", f"set count to {allowed}, or use another machine type", at
    )


def _karpenter(spec: Field) -> Outcome:
    requirements = requirements_of(spec)
    if requirements is UNKNOWN:
        return undecided("its requirements are not known yet")
    others = tuple(each for each in requirements if each.at("key").text() not in GPU_COUNT_LABELS)
    if len(others) == len(requirements):
        return not_applicable("it requires no number of GPUs")
    without = gpu_machines(others)
    if not without.complete or not without.gpus:
        return not_applicable("the catalog lacks some of the instance types that it may launch")
    if gpu_machines(requirements).gpus:
        return PASSES
    offered = ", ".join(f"{machine.name} has {machine.gpu_counts[0]}" for machine in without.gpus[:4])
    return fails(
        f"no instance type that its other requirements allow has the number of GPUs in {GPU_COUNT_LABELS[0]}: {offered}",
        "require a number that one of these instance types has, or allow other instance types",
        "spec.template.spec.requirements",
    )


RULE = Rule(
    code="FLX016",
    severity=Severity.HIGH,
    judge=judge,
    why="Machines have fixed numbers of GPUs: GKE refuses such a pool only when it is created, and Karpenter never launches a node for it.",
    remediation="Request a number of GPUs that the machine offers, or a machine that has this number.",
    link="https://docs.cloud.google.com/compute/docs/gpus",
    sources=("https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html",),
)
