"""Ceilings of capacity: pools without one, and ceilings that cannot be reached."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from flexspot.capacity.catalog.accelerators import NVIDIA, ON_EC2, Accelerator
from flexspot.capacity.catalog.node_labels import CAPACITY_TYPE_LABEL, COMPUTE_CLASS_LABEL, GKE_POOL_LABEL
from flexspot.capacity.catalog.unreachable_limits import NodeCeilings, out_of_reach
from flexspot.capacity.values.verdict import NOT_APPLICABLE, PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.gpu_machines import GKE_LABELS, PREFIXES, gpu_selection, is_gpu_machine
from flexspot.policies.inventory.node_offer import (
    CatalogMachine,
    allowed_machines,
    allows,
    machines_of,
)
from flexspot.policies.inventory.objects import ComputeClassView, KarpenterNodePool, ResourceFlavor
from flexspot.policies.inventory.views import (
    Autopilot,
    Bounds,
    Ceiling,
    GkeNodePool,
    GpuPool,
    Inventory,
    NodeAutoProvisioning,
    PodSet,
    Pool,
)
from flexspot.policies.judging import Cloud, Parameter, Parameters, Rule
from flexspot.policies.pools import gpu_pool_of, pools_for
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, all_of, any_of, negated

MOST = (
    Parameter("most", 100_000, "The highest number of nodes or GPUs that counts as a limit."),
    Parameter("most-cores-or-gb", 10_000_000, "The highest number of cores or GB of memory that counts as a limit."),
)
"""Parameters with the largest numbers that count as a limit. Larger ones, which no budget could pay for, count as no limit."""


def bounded(bounds: Bounds, parameters: Parameters, makes: str) -> Outcome:
    """Pass if every group of bounds has a finite number. `makes` begins the message, such as "it creates GPU nodes"."""

    def most(ceiling: Ceiling) -> int:
        return parameters.number("most" if ceiling.unit in {Ceiling.NODES, Ceiling.GPUS} else "most-cores-or-gb")

    def finite(ceiling: Ceiling) -> Tri:
        if ceiling.amount is UNKNOWN:
            return UNKNOWN
        return ceiling.amount is not None and 0 <= ceiling.amount <= most(ceiling)

    answers = [(group, any_of(map(finite, group))) for group in bounds]
    if missing := [_advised(group) for group, answer in answers if answer is False]:
        fields = ", ".join(" or ".join(ceiling.field for ceiling in group) for group in missing)
        highest = min(most(ceiling) for group in missing for ceiling in group)
        # One limit per group is enough, but every group needs one.
        joint = " or " if len(missing) == 1 else ", "
        units = joint.join(sorted({ceiling.unit for group in missing for ceiling in group}))
        return fails(
            f"{makes} without a limit: {fields} is not set to a number from 0 to {highest}",
            f"set {fields} to the most {units} that you would pay for",
        )
    if unknown := [_advised(group) for group, answer in answers if answer is UNKNOWN]:
        return undecided(f"{', '.join(' or '.join(ceiling.field for ceiling in group) for group in unknown)} is not known yet")
    return PASSES


def _advised(group: tuple[Ceiling, ...]) -> tuple[Ceiling, ...]:
    return tuple(ceiling for ceiling in group if ceiling.advised)


_MIB = 1024 * 1024


_OTHER_LIMITS = ("nodes", "cpu", "memory")


GPU_COUNT_LABELS = tuple(f"{prefix}{kind.instance_label}-count" for kind in ON_EC2 for prefix in PREFIXES)


@dataclass(frozen=True)
class Machines:
    """GPU machines that match a list of requirements."""

    gpus: tuple[CatalogMachine, ...]
    complete: bool
    """False if other machines match that the catalog does not list."""


def requirements_of(spec: Field) -> tuple[Field, ...] | Unknown:
    """Return the requirements of a NodePool, or UNKNOWN while one of their values is not known."""
    listed = spec.at("template", "spec", "requirements").parts()
    for each in listed.fields:
        values = each.at("values").parts()
        if UNKNOWN in (each.at("key").value, each.at("operator").value, *(value.value for value in values.fields)) or not values.complete:
            return UNKNOWN
    return listed.fields if listed.complete else UNKNOWN


def gpu_machines(requirements: tuple[Field, ...]) -> Machines:
    """Return the GPU machines that Karpenter may launch for a pod that requests a GPU."""
    left, complete = allowed_machines(requirements)
    return Machines(tuple(machine for machine in left if machine.gpu), complete)


def names_gpus(requirements: tuple[Field, ...], kind: Accelerator) -> bool:
    """Return whether the requirements name machines with GPUs of `kind` and none of them excludes these machines."""
    selections = [gpu_selection(each, (kind,)) for each in requirements]
    return any(each.names is True for each in selections) and not any(each.excludes is True for each in selections)


def limited_kind(spec: Field) -> Accelerator:
    """Return the kind of GPUs that a NodePool limits; NVIDIA's if it limits none."""
    return next((kind for kind in ON_EC2 if not spec.at("limits", kind.resource).absent), NVIDIA)


def limited_machines(spec: Field) -> tuple[Decimal, Machines] | Outcome:
    """Return the limit on GPUs and the machines that it applies to. Without one of them, return the verdict of the rules that need both."""
    kind = limited_kind(spec)
    limit, requirements = spec.at("limits", kind.resource).number(), requirements_of(spec)
    if limit is None or limit == 0:
        return NOT_APPLICABLE
    if limit is UNKNOWN or requirements is UNKNOWN:
        return undecided("its requirements, or its limit on GPUs, are not known yet")
    found = gpu_machines(requirements)
    machines = Machines(tuple(machine for machine in found.gpus if machine.resource == kind.resource), found.complete)
    if not machines.gpus or not machines.complete or not names_gpus(requirements, kind):
        return NOT_APPLICABLE
    return limit, machines


def node_ceilings(spec: Field) -> tuple[NodeCeilings, bool]:
    """Return the known limits on nodes, cpu and memory, and whether all three are known."""
    nodes, vcpu, memory = (spec.at("limits", name).number() for name in _OTHER_LIMITS)
    known = NodeCeilings(
        None if nodes is UNKNOWN else nodes,
        None if vcpu is UNKNOWN else vcpu,
        None if memory is UNKNOWN or memory is None else memory / _MIB,
    )
    return known, UNKNOWN not in (nodes, vcpu, memory)


def written_limits(spec: Field) -> str:
    """Return the limits other than that on GPUs as text, such as "nodes=4, cpu=64"."""
    texts = {name: spec.at("limits", name).text() for name in _OTHER_LIMITS}
    return ", ".join(f"{name}={text}" for name, text in texts.items() if isinstance(text, str))


def creates_pools(compute_class: ComputeClassView) -> Tri:
    """Return whether GKE may create node pools for priorities that name none."""
    return compute_class.spec.at("nodePoolAutoCreation", "enabled").equals("true")


def creates_on_demand(priority: Field) -> Tri:
    """Return whether GKE would create on-demand GPU pools for the priority: not Spot, not flex-start, not wholly reserved.

    The reservation affinities AnyBestEffort and None fall back to on-demand, and so does a priority without an affinity.
    Source: the definition of ComputeClass, cloud.google.com/v1.
    """
    machine, family = priority.at("machineType").text(), priority.at("machineFamily").text()
    named = UNKNOWN if machine is UNKNOWN or family is UNKNOWN else is_gpu_machine(machine or f"{family}-any")
    return all_of(
        [
            priority.at("nodepools").absent if priority.at("nodepools").known else UNKNOWN,
            any_of([not priority.at("gpu").absent, named]),
            negated(priority.at("spot").equals("true")),
            negated(priority.at("flexStart", "enabled").equals("true")),
            negated(priority.at("reservations", "affinity").equals("Specific", "AnyThenFail")),
        ]
    )


def created_accelerators(compute_class: ComputeClassView) -> Iterator[str | Unknown]:
    """Yield the GPU types for which GKE may create pools of the class."""
    if creates_pools(compute_class) is not True:
        return
    for priority in compute_class.spec.at("priorities").parts().fields:
        accelerator = priority.at("gpu", "type").text()
        if accelerator is not None:
            yield accelerator


@Rule(
    code="FLX002",
    severity=Severity.CRITICAL,
    why="An autoscaler buys whatever pending pods ask for; one wrong replica count without a limit is a bill without a limit. "
    "Karpenter's limits are soft: nodes that start at the same moment may exceed them briefly.",
    remediation="Give the pool a finite maximum: nodes on GKE and EKS, nvidia.com/gpu or aws.amazon.com/neuron on Karpenter, every "
    "resource type on GKE's node auto-provisioning.",
    link="https://karpenter.sh/docs/concepts/nodepools/#speclimits",
    parameters=MOST,
)
def gpu_pool_without_limit(capacity: GpuPool | NodeAutoProvisioning, parameters: Parameters) -> Outcome:
    """GPU capacity that can grow without limit.

    Every group of bounds needs a finite number. A number too large for any budget counts as none.
    """
    return bounded(capacity.bounds, parameters, f"it creates GPU nodes (by {capacity.evidence})")


@Rule(
    code="FLX031",
    severity=Severity.HIGH,
    why="One Deployment with a few zeros too many in its replicas buys nodes until the account's quota is used up: the bill has no "
    "ceiling.",
    remediation="Give the pool a finite maximum: nodes on GKE and EKS; cpu, memory or nodes on Karpenter.",
    link="https://karpenter.sh/docs/concepts/nodepools/#speclimits",
    sources=("https://github.com/kubernetes-sigs/karpenter/issues/745",),
    parameters=MOST,
)
def unbounded_node_pool(pool: Pool, parameters: Parameters) -> Outcome:
    """Capacity without GPUs that can grow without limit.

    Pools that have or may have GPUs are judged by gpu-pool-without-limit, which requires a limit on the GPUs themselves.
    """
    if isinstance(pool, GpuPool):
        return NOT_APPLICABLE
    takes = {kind: pool.offer.carries({CAPACITY_TYPE_LABEL: Field(kind)}) for kind in ("reserved", "spot", "on-demand")}
    if takes == {"reserved": True, "spot": False, "on-demand": False}:
        return NOT_APPLICABLE
    return bounded(pool.bounds, parameters, "it creates nodes")


@Rule(
    code="FLX032",
    severity=Severity.MEDIUM,
    why="A Spot shortage, which may last for days, buys the same GPUs at full price instead, and no one is asked.",
    remediation="Make on-demand an explicit choice: a separate pool, with its own maximum, after the cheaper ones.",
    link="https://karpenter.sh/docs/faq/#what-if-there-is-no-spot-capacity-will-karpenter-use-on-demand",
    sources=("Karpenter AWS provider 1.14.1, pkg/providers/instance: reserved, then Spot, then on-demand, of what is allowed.",),
)
def on_demand_fallback_uncapped(capacity: KarpenterNodePool | ComputeClassView, _: Parameters, inventory: Inventory) -> Outcome:
    """GPU capacity that falls back to on-demand when the cheaper type runs out, without a ceiling.

    Fails for a NodePool that allows Spot and on-demand, and for a compute class whose lower priority lets GKE create on-demand pools. Not
    on Autopilot, which creates every pool itself.
    """
    if isinstance(capacity, KarpenterNodePool):
        return _node_pool(capacity, inventory)
    if inventory.of(Autopilot):
        return NOT_APPLICABLE
    # A priority that names node pools rules out Autopilot, which has none.
    names_pools = any(not priority.at("nodepools").absent for priority in capacity.spec.at("priorities").parts().fields)
    return _compute_class(capacity, standard=names_pools or inventory.can_judge_missing(GkeNodePool, NodeAutoProvisioning))


def _node_pool(pool: KarpenterNodePool, inventory: Inventory) -> Outcome:
    gpus = gpu_pool_of(pool.identity, inventory)
    if gpus is None:
        return NOT_APPLICABLE
    requirements = pool.spec.at("template", "spec", "requirements").parts()
    # Without a requirement Karpenter takes the cheapest capacity: Spot first, then on-demand.
    of_capacity = [each for each in requirements.fields if each.at("key").equals(CAPACITY_TYPE_LABEL) is not False]
    known: list[Tri] = [gpus.concerned, True if requirements.complete else UNKNOWN]
    both = all_of([*known, *(allows(each, kind) for each in of_capacity for kind in ("spot", "on-demand"))])
    if both is UNKNOWN:
        return undecided("its requirements are not fully known yet")
    if both is False:
        return PASSES
    how = f"its requirement on {CAPACITY_TYPE_LABEL} allows both" if of_capacity else f"it has no requirement on {CAPACITY_TYPE_LABEL}"
    return fails(
        f"{how}: when Spot runs out, its nodes are on-demand, up to all that spec.limits allows",
        f"require {{key: {CAPACITY_TYPE_LABEL}, operator: In, values: [spot]}}, and give on-demand its own NodePool, with a lower weight "
        "and its own limit",
        "spec.template.spec.requirements",
    )


def _compute_class(compute_class: ComputeClassView, *, standard: bool) -> Outcome:
    priorities = compute_class.spec.at("priorities").parts()
    answers = [all_of([creates_pools(compute_class), creates_on_demand(priority)]) for priority in priorities.fields]
    # Only a priority that follows a different kind of capacity is a fallback.
    lower = [all_of([answer, any_of(negated(each) for each in answers[:place])]) for place, answer in enumerate(answers)]
    if True in lower and not standard:
        return undecided("whether its cluster is an Autopilot cluster, where no pool has a ceiling, is not known")
    if True in lower:
        at = f"spec.priorities[{lower.index(True)}]"
        return fails(
            f"{at} lets GKE create on-demand GPU pools when the priorities above it have no capacity, and such pools have no ceiling",
            f"have {at} name an on-demand node pool with a maximum: {{nodepools: [POOL]}}",
            at,
        )
    if UNKNOWN in lower or not priorities.complete:
        return undecided("spec.priorities, or spec.nodePoolAutoCreation, is not fully known yet")
    return PASSES if len(answers) > 1 else NOT_APPLICABLE


@Rule(
    code="FLX030",
    severity=Severity.HIGH,
    clouds=(Cloud.GKE,),
    why="GKE creates no nodes for a GPU type without a limit: the pods stay pending, and only the autoscaler's log says why.",
    remediation="In resourceLimits, list cpu, memory and every GPU type that pods, flavors or compute classes request, each with a "
    "maximum.",
    link="https://docs.cloud.google.com/kubernetes-engine/docs/how-to/node-auto-provisioning",
    sources=('GoogleCloudPlatform/cluster-autoscaler (2026-08): "GPU type doesn\'t have a limit defined".',),
)
def auto_provisioning_without_gpu_limit(provisioning: NodeAutoProvisioning, _: Parameters, inventory: Inventory) -> Outcome:
    """Node auto-provisioning without a limit for a GPU type that workloads request.

    A limit of 0 allows no nodes, so it counts as no limit.
    """
    limits = provisioning.limits.parts()
    limited = [each.at("resourceType").text() for each in limits.fields if each.at("maximum").number() != 0]
    wanted = list(_requested_types(inventory))
    missing = {each: by for each, by in wanted if each is not UNKNOWN and each not in limited}
    if missing and limits.complete and UNKNOWN not in limited:
        types = ", ".join(f"{accelerator} (requested by {by})" for accelerator, by in sorted(missing.items(), key=str))
        return fails(
            f"clusterAutoscaling.resourceLimits has no limit for {types}, and no pool in the input provides it",
            "for each of them, add {resourceType: TYPE, maximum: the most GPUs you would pay for} to clusterAutoscaling.resourceLimits",
            "clusterAutoscaling.resourceLimits",
        )
    if missing or any(each is UNKNOWN for each, _ in wanted):
        return undecided("clusterAutoscaling.resourceLimits, or the GPU type that a workload requests, is not known yet")
    return PASSES if wanted else NOT_APPLICABLE


def _requested_types(inventory: Inventory) -> Iterator[tuple[str | Unknown, str]]:
    """Yield the requested GPU types that no declared pool provides, each with the object that requests it."""
    for flavor in inventory.of(ResourceFlavor):
        yield from _selected(dict(flavor.spec.at("nodeLabels").parts().named), flavor.identity.described, inventory)
    for pods in inventory.of(PodSet):
        if not pods.serve_nodes and pods.requests_gpus is True:
            yield from _selected(dict(pods.pod.at("nodeSelector").parts().named), pods.identity.described, inventory)
    for compute_class in inventory.of(ComputeClassView):
        yield from ((accelerator, compute_class.identity.described) for accelerator in created_accelerators(compute_class))


def _selected(labels: Mapping[str, Field], by: str, inventory: Inventory) -> Iterator[tuple[str | Unknown, str]]:
    """Yield the GPU type that the labels request from node auto-provisioning.

    Labels that select a pool request no GPU type. Those that select a compute class request the types in its priorities, which are listed
    separately.
    """
    accelerator = next((labels[key].text() for key in GKE_LABELS if key in labels), None)
    if accelerator is None or labels.keys() & {GKE_POOL_LABEL, COMPUTE_CLASS_LABEL}:
        return
    if any_of(pool.offer.carries(labels) for pool in pools_for(Pool, labels, inventory)) is False:
        yield accelerator, by


@Rule(
    code="FLX016",
    severity=Severity.HIGH,
    why="Machines have fixed numbers of GPUs: GKE refuses such a pool only when it is created, and Karpenter never launches a node for it.",
    remediation="Request a number of GPUs that the machine offers, or a machine that has this number.",
    link="https://docs.cloud.google.com/compute/docs/gpus",
    sources=("https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html",),
)
def gpu_count_not_offered_by_machine(pool: GkeNodePool | KarpenterNodePool, _: Parameters) -> Outcome:
    """A number of GPUs that the machine type does not offer.

    GKE pools name machine and count directly. In Karpenter the count is one of several requirements on the machine.
    """
    return _gke(pool) if isinstance(pool, GkeNodePool) else _karpenter(pool.spec)


def _gke(view: GkeNodePool) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    node = view.pool.at("nodeConfig")
    accelerators = node.at("guestAccelerators").parts()
    if node.known and accelerators.complete and not accelerators.fields:
        return NOT_APPLICABLE
    name = node.at("machineType").text()
    if name is UNKNOWN or not node.known or not accelerators.complete:
        return undecided("its machine type, or its accelerators, are not known yet")
    machine, written = machines_of("gcp").get(str(name)), accelerators.fields[0]
    if machine is None or not machine.gpu:
        return NOT_APPLICABLE
    gpu, count = written.at("type").text(), written.at("count").number()
    attached = name.startswith("n1-") if isinstance(name, str) else False
    at = f"{view.where}nodeConfig.{view.accelerators_field}"
    if isinstance(gpu, str) and gpu != machine.gpu:
        if attached:
            return NOT_APPLICABLE
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
        return NOT_APPLICABLE
    without = gpu_machines(others)
    if not without.complete or not without.gpus:
        return NOT_APPLICABLE
    if gpu_machines(requirements).gpus:
        return PASSES
    offered = ", ".join(f"{machine.name} has {machine.gpu_counts[0]}" for machine in without.gpus[:4])
    return fails(
        f"no instance type that its other requirements allow has the number of GPUs in {GPU_COUNT_LABELS[0]}: {offered}",
        "require a number that one of these instance types has, or allow other instance types",
        "spec.template.spec.requirements",
    )


@Rule(
    code="FLX015",
    severity=Severity.LOW,
    clouds=(Cloud.EKS,),
    why="A fraction of a node cannot be launched, so the actual ceiling differs from the limit: quotas based on the limit promise too "
    "much.",
    remediation="Set a multiple of the number of GPUs that one node of the pool has.",
    link="https://karpenter.sh/docs/concepts/nodepools/#speclimits",
    sources=("https://github.com/aws/karpenter-provider-aws/issues/7038",),
)
def gpu_limit_not_multiple_of_machine(pool: KarpenterNodePool, _: Parameters) -> Outcome:
    """A GPU limit that is not a multiple of a node's GPUs.

    Fails if the limit is not a multiple of the GPUs of any machine that the pool may launch.
    """
    found, resource = limited_machines(pool.spec), limited_kind(pool.spec).resource
    if not isinstance(found, tuple):
        return found
    limit, machines = found
    counts = sorted({machine.gpu_counts[0] for machine in machines.gpus})
    if any(limit % count == 0 for count in counts):
        return PASSES
    near = sorted({int(limit // counts[0] * counts[0]), int(-(-limit // counts[0]) * counts[0])} - {0})
    of_machine = next(machine for machine in machines.gpus if machine.gpu_counts[0] == counts[0])
    return fails(
        f'spec.limits["{resource}"] is {limit}, which no whole number of nodes adds up to: a {of_machine.name} has {counts[0]}',
        f"set it to {' or '.join(map(str, near))}",
        f'spec.limits["{resource}"]',
    )


@Rule(
    code="FLX014",
    severity=Severity.MEDIUM,
    clouds=(Cloud.EKS,),
    why="Queues rely on the GPU limit; jobs admitted beyond what cpu or memory allow wait for nodes that Karpenter never starts.",
    remediation="Set the limits on nodes, cpu and memory high enough for the limit on nvidia.com/gpu.",
    link="https://karpenter.sh/docs/concepts/nodepools/#speclimits",
    sources=("https://github.com/aws/karpenter-provider-aws/issues/6328",),
)
def gpu_limit_unreachable(pool: KarpenterNodePool, _: Parameters) -> Outcome:
    """A GPU limit that cannot be reached because of the other limits.

    Fails if any machine that the pool may launch does not reach the limit, because Karpenter chooses the machine.
    """
    found, resource = limited_machines(pool.spec), limited_kind(pool.spec).resource
    if not isinstance(found, tuple):
        return found
    limit, machines = found
    ceilings, known = node_ceilings(pool.spec)
    ended = out_of_reach([(machine, machine.gpu_counts[0]) for machine in machines.gpus], limit, ceilings)
    if ended:
        machine, written = ended.machine.name, written_limits(pool.spec)
        return fails(
            f'spec.limits["{resource}"] is {limit}, but with {machine} nodes the other limits ({written}) allow only {ended.gpus}',
            f"allow {ended.needed}, remove {machine} from its requirements, or lower the limit on {resource}",
            f'spec.limits["{resource}"]',
        )
    return PASSES if known else undecided("its other limits are not known yet")
