"""Karpenter NodePools, of any version of karpenter.sh."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.node_labels import GPU_RESOURCE
from policies.field import Field
from policies.gpu_machines import gpu_selection
from policies.inventory import Ceiling, GpuPool, Taint
from policies.unknown import UNKNOWN, Tri, any_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.reading.source import Source


def read(source: Source) -> Iterator[GpuPool]:
    """The NodePool, if it makes GPU nodes."""
    if (source.family, source.kind) != ("karpenter.sh", "NodePool"):
        return
    spec = source.fields.at("spec")
    concerned, evidence = _makes_gpu_nodes(spec)
    if concerned is False:
        return
    taints = spec.at("template", "spec", "taints").parts()
    yield GpuPool(
        identity=source.identity,
        concerned=concerned,
        partial=source.fields.partial,
        evidence=evidence,
        taints=tuple(Taint(taint.at("key"), taint.at("effect")) for taint in taints.fields),
        taints_complete=taints.complete,
        taints_field="spec.template.spec.taints",
        effect_spelling="NoSchedule",
        bounds=(_ceilings(spec),),
    )


def _makes_gpu_nodes(spec: Field) -> tuple[Tri, str]:
    """Whether the pool makes GPU nodes, and which field says so.

    Requirements are joined by "and": one that allows no GPU machine rules them out. Without such a one, the first that names GPU machines
    decides, then a label of the nodes, then a limit on GPUs; a limit of 0 says that there are none.
    """
    requirements = [(each, gpu_selection(each)) for each in spec.at("template", "spec", "requirements").parts().fields]
    if any(selection.excludes is True for _, selection in requirements):
        return False, ""
    answers: list[tuple[Tri, str]] = [
        (selection.names, f"its requirement on {_key(requirement)}") for requirement, selection in requirements
    ]
    for key, value in spec.at("template", "metadata", "labels").parts().named:
        label = {"key": key, "operator": "In", "values": [value.value]}
        answers.append((gpu_selection(Field(label)).names, f"its node label {key}"))
    limit = spec.at("limits", GPU_RESOURCE)
    amount = limit.number()
    answers.append((amount if amount is UNKNOWN else not limit.absent and amount != 0, f"its limit on {GPU_RESOURCE}"))
    if not spec.at("template", "spec", "requirements").parts().complete:
        answers.append((UNKNOWN, "its requirements"))
    concerned = any_of(answer for answer, _ in answers)
    return concerned, next((evidence for answer, evidence in answers if answer is concerned), "")


def _key(requirement: Field) -> str:
    key = requirement.at("key").text()
    return key if isinstance(key, str) else "a label"


def _ceilings(spec: Field) -> tuple[Ceiling, ...]:
    """A pool that scales is limited by GPUs; a static one, with `replicas`, may have no other limit than `nodes` (a rule of the CRD).

    While nobody knows which it is, either limit will do. A patch is judged by what is written in it.
    """
    gpus, nodes = (
        Ceiling(f'spec.limits["{resource}"]', unit, spec.at("limits", resource).number())
        for resource, unit in ((GPU_RESOURCE, Ceiling.GPUS), ("nodes", Ceiling.NODES))
    )
    replicas = spec.at("replicas")
    if replicas.known:
        return (gpus if replicas.absent else nodes,)
    written = tuple(ceiling for ceiling in (gpus, nodes) if ceiling.amount is not UNKNOWN)
    return written if spec.partial and written else (gpus, nodes)
