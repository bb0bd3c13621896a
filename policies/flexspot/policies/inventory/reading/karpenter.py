"""Readers of Karpenter NodePools of any version of karpenter.sh, and of AWS's Node Termination Handler."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import NVIDIA, ON_EC2, Accelerator
from flexspot.capacity.catalog.node_labels import CAPACITY_TYPE_LABEL, KARPENTER_POOL_LABEL
from flexspot.policies.inventory.gpu_machines import gpu_selection
from flexspot.policies.inventory.node_offer import EC2_NOTICE_SECONDS, NodeOffer, allows
from flexspot.policies.inventory.objects import TerminationHandler
from flexspot.policies.inventory.views import Ceiling, GpuPool, Pool
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, all_of, any_of, negated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from flexspot.policies.inventory.reading.source import ObjectSource


# Labels of the node that Karpenter or its AWS provider knows, in addition to those of the machine. Source: karpenter.sh/v1 labels.go and
# karpenter.k8s.aws/v1 labels.go of v1.14.1.
_WELL_KNOWN = (
    "karpenter.k8s.aws/",
    "karpenter.sh/capacity-type",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "node.kubernetes.io/",
    "topology.k8s.aws/",
    "topology.kubernetes.io/",
    "eks.amazonaws.com/",
)

_GB = Decimal(1000) ** 3


def read(source: ObjectSource) -> Iterator[Pool]:
    """Yield the NodePool, as a GpuPool if it creates GPU nodes."""
    if (source.family, source.kind) != ("karpenter.sh", "NodePool"):
        return
    spec = source.fields.at("spec")
    by_kind = {kind: _makes_gpu_nodes(spec, kind) for kind in ON_EC2}
    concerned = any_of(answer for answer, _ in by_kind.values())
    evidence = next((found for answer, found in by_kind.values() if answer is concerned), "")
    # A pool of unknown devices counts as one of the usual devices.
    kinds = [kind for kind, (answer, _) in by_kind.items() if answer is True] or [NVIDIA]
    offer = _offer(source)
    yield (Pool if concerned is False else GpuPool)(
        identity=source.identity,
        concerned=True if concerned is False else concerned,
        partial=source.fields.partial,
        evidence=evidence,
        taints=spec.at("template", "spec", "taints").parts(),
        taints_field="spec.template.spec.taints",
        effect_spelling="NoSchedule",
        bounds=(_ceilings(spec, kinds) if concerned is not False else _ceilings_without_gpus(spec),),
        offer=offer,
        spot=_may_be_spot(spec),
        spot_field=f"its requirements on {CAPACITY_TYPE_LABEL}: none means any",
        notice_seconds=Decimal(EC2_NOTICE_SECONDS),
        gpus=_most(spec, kinds),
        node_gpus=offer.most_gpus,
        owner_labels=source.fields.at("metadata", "labels"),
        owner_field="metadata.labels",
        resources=tuple(kind.resource for kind in kinds),
    )


def _offer(source: ObjectSource) -> NodeOffer:
    template = source.fields.at("spec", "template")
    labels, requirements = template.at("metadata", "labels").parts(), template.at("spec", "requirements").parts()
    name = source.fields.at("metadata", "name")
    return NodeOffer(
        fixed={**dict(labels.named), KARPENTER_POOL_LABEL: Field(UNKNOWN) if name.absent else name},
        requirements=requirements.fields,
        open_prefixes=_WELL_KNOWN,
        complete=labels.complete and requirements.complete,
    )


def _may_be_spot(spec: Field) -> Tri:
    """Return whether the pool allows Spot. Without a requirement it takes any capacity, Spot before on-demand.

    Karpenter's provider for AWS 1.14.1 chooses it in this way (getCapacityType in pkg/providers/instance).
    """
    requirements = spec.at("template", "spec", "requirements").parts()
    of_capacity = [each for each in requirements.fields if each.at("key").equals(CAPACITY_TYPE_LABEL) is not False]
    if not requirements.complete:
        return UNKNOWN
    if any(each.at("key").value is UNKNOWN for each in of_capacity):
        return UNKNOWN
    label = spec.at("template", "metadata", "labels", CAPACITY_TYPE_LABEL)
    return all_of([_all_allow(of_capacity), True if label.absent else label.equals("spot")])


def _all_allow(requirements: list[Field]) -> Tri:
    answers = [allows(each, "spot") for each in requirements]
    if False in answers:
        return False
    return UNKNOWN if UNKNOWN in answers else True


def _most(spec: Field, kinds: Sequence[Accelerator]) -> Decimal | Unknown | None:
    """Return the most GPUs that it can have. None if one kind has no limit."""
    limits = [spec.at("limits", kind.resource).number() for kind in kinds]
    if None in limits:
        return None
    return UNKNOWN if UNKNOWN in limits else sum((each for each in limits if isinstance(each, Decimal)), Decimal(0))


def _makes_gpu_nodes(spec: Field, kind: Accelerator) -> tuple[Tri, str]:
    """Return whether the pool creates nodes with accelerators of a kind, and the field that shows it.

    Requirements are joined by "and": one that allows no GPU machine excludes them. Otherwise the first one that names GPU machines decides,
    then a label of the nodes, then a limit on GPUs. A limit of 0 excludes them.
    """
    requirements = [(each, gpu_selection(each, (kind,))) for each in spec.at("template", "spec", "requirements").parts().fields]
    if any(selection.excludes is True for _, selection in requirements):
        return False, ""
    answers: list[tuple[Tri, str]] = [
        (selection.names, f"its requirement on {_key(requirement)}") for requirement, selection in requirements
    ]
    for key, value in spec.at("template", "metadata", "labels").parts().named:
        label = {"key": key, "operator": "In", "values": [value.value]}
        answers.append((gpu_selection(Field(label), (kind,)).names, f"its node label {key}"))
    limit = spec.at("limits", kind.resource)
    amount = limit.number()
    answers.append((amount if amount is UNKNOWN else not limit.absent and amount != 0, f"its limit on {kind.resource}"))
    if not spec.at("template", "spec", "requirements").parts().complete:
        answers.append((UNKNOWN, "its requirements"))
    concerned = any_of(answer for answer, _ in answers)
    return concerned, next((evidence for answer, evidence in answers if answer is concerned), "")


def _key(requirement: Field) -> str:
    key = requirement.at("key").text()
    return key if isinstance(key, str) else "a label"


def _ceilings(spec: Field, kinds: Sequence[Accelerator]) -> tuple[Ceiling, ...]:
    """Return the written ceilings of GPUs, nodes, cores or memory; of a static pool, with `replicas`, of `nodes` alone.

    Karpenter checks each of them for every pool (pkg/controllers/provisioning/scheduling/scheduler.go of v1.14.1). With `replicas` the CRD
    accepts no other limit than `nodes`. While the sort of pool is unknown, any ceiling will do. A patch is judged by its own fields.
    """
    replicas = spec.at("replicas")
    limits = {each.resource: spec.at("limits", each.resource).number() for each in kinds}
    # A limit on one kind does not bound another kind.
    whole = None not in limits.values()
    of_gpus = [Ceiling(f'spec.limits["{each}"]', Ceiling.GPUS, amount if whole else None) for each, amount in limits.items()]
    if replicas.known and not replicas.absent:
        return (Ceiling("spec.limits.nodes", Ceiling.NODES, spec.at("limits", "nodes").number()),)
    others = (each for each in _ceilings_without_gpus(spec) if each.field != "spec.replicas")
    # A ceiling of nodes is also advised while it may be a static pool.
    ceilings = (*of_gpus, *(replace(each, advised=each.unit == Ceiling.NODES and not replicas.known) for each in others))
    written = tuple(each for each in ceilings if each.amount is not UNKNOWN)
    return tuple(replace(each, advised=True) for each in written) if spec.partial and written else ceilings


def _ceilings_without_gpus(spec: Field) -> tuple[Ceiling, ...]:
    """Return the written ceilings of cores, memory or nodes of a pool without GPUs; of a static one also its `replicas`."""
    units = {"nodes": Ceiling.NODES, "cpu": Ceiling.CORES, "memory": Ceiling.MEMORY}
    amounts = {f"spec.limits.{resource}": (unit, spec.at("limits", resource)) for resource, unit in units.items()}
    if not spec.at("replicas").absent:
        amounts["spec.replicas"] = (Ceiling.NODES, spec.at("replicas"))
    return tuple(Ceiling(field, unit, _in_unit(unit, amount)) for field, (unit, amount) in amounts.items())


def _in_unit(unit: str, amount: Field) -> Decimal | Unknown | None:
    """Return the amount in the unit of the ceiling. Memory is written in bytes."""
    number = amount.number()
    return number / _GB if isinstance(number, Decimal) and unit == Ceiling.MEMORY else number


_NAME = "aws-node-termination-handler"
_SELECTORS = ("daemonsetNodeSelector", "linuxNodeSelector", "nodeSelector")
"""Selectors of the chart. The first of these that is written counts."""

_VARIABLES = {
    "ENABLE_SQS_TERMINATION_DRAINING": "enableSqsTerminationDraining",
    "ENABLE_SPOT_INTERRUPTION_DRAINING": "enableSpotInterruptionDraining",
    "ENABLE_REBALANCE_DRAINING": "enableRebalanceDraining",
    "CHECK_TAG_BEFORE_DRAINING": "checkTagBeforeDraining",
    "CHECK_ASG_TAG_BEFORE_DRAINING": "checkASGTagBeforeDraining",
}
"""The program's settings, with their names in the chart."""


def read_termination_handler(source: ObjectSource) -> Iterator[TerminationHandler]:
    """Yield the handler that a chart's release, a DaemonSet or a Deployment installs."""
    if source.chart == _NAME:
        yield _release(source)
    elif (source.family, source.kind) in {("apps", "DaemonSet"), ("apps", "Deployment")}:
        yield from _workload(source)


def _release(source: ObjectSource) -> TerminationHandler:
    values = source.fields.at("values")
    complete = source.fields.at("valueYamlFiles").absent
    switches = {name: values.at(name) for name in _VARIABLES.values()}
    selectors = [values.at(name) for name in _SELECTORS]
    selector = next((each for each in selectors if not each.absent), Field(None if complete else UNKNOWN))
    return TerminationHandler(*source.seen, _drains(switches if complete else _or_elsewhere(switches)), selector)


def _workload(source: ObjectSource) -> Iterator[TerminationHandler]:
    for image, container in source.containers():
        if f"/{_NAME}" not in image:
            continue
        variables = container.at("env").parts()
        # A variable with valueFrom has no value here.
        written = {
            _VARIABLES[name]: each.at("value") if each.at("valueFrom").absent else Field(UNKNOWN)
            for each in variables.fields
            if (name := str(each.at("name").text())) in _VARIABLES
        }
        switches = {name: written.get(name, Field(None)) for name in _VARIABLES.values()}
        complete = variables.complete and container.at("envFrom").absent
        drains = _drains(switches if complete else _or_elsewhere(switches))
        yield TerminationHandler(*source.seen, drains, source.fields.at("spec", "template", "spec", "nodeSelector"))


def _or_elsewhere(switches: Mapping[str, Field]) -> Mapping[str, Field]:
    """Return the switches, with UNKNOWN for missing ones: they may be written in a place that is not read."""
    return {name: Field(UNKNOWN) if each.absent else each for name, each in switches.items()}


def _drains(switches: Mapping[str, Field]) -> Tri:
    """Return whether the handler drains nodes.

    In queue mode it drains nodes with its tag, unless the check of tags is off; in metadata mode every node that it runs on. It drains Spot
    interruptions by default, and rebalance recommendations only if enabled. Source: values.yaml and templates of
    config/helm/aws-node-termination-handler.
    """
    queue = switches["enableSqsTerminationDraining"].equals("true")
    untagged = any_of([switches["checkTagBeforeDraining"].equals("false"), switches["checkASGTagBeforeDraining"].equals("false")])
    on_node = any_of(
        [negated(switches["enableSpotInterruptionDraining"].equals("false")), switches["enableRebalanceDraining"].equals("true")]
    )
    return any_of([all_of([queue, untagged]), all_of([negated(queue), on_node])])
