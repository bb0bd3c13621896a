"""EKS managed node groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.gpu_machines import is_gpu_machine
from policies.inventory import Ceiling, GpuPool, Taint
from policies.unknown import UNKNOWN, Tri, any_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.field import Field
    from policies.reading.source import Source


def read(source: Source) -> Iterator[GpuPool]:
    """The GPU node group of an `aws:eks` NodeGroup.

    A group that takes its machine from a launch template, and whose image does not say GPU, may or may not have GPUs: UNKNOWN.
    """
    if (source.family, source.kind) != ("aws:eks", "NodeGroup"):
        return
    group = source.fields
    image = _gpu_image(group.at("amiType"))
    machines = _gpu_machines(group)
    concerned = any_of([image, machines])
    if concerned is False:
        return
    taints = group.at("taints").parts()
    yield GpuPool(
        identity=source.identity,
        concerned=concerned,
        partial=False,
        evidence=next((name for name, answer in (("instanceTypes", machines), ("amiType", image)) if answer is concerned), ""),
        taints=tuple(Taint(taint.at("key"), taint.at("effect")) for taint in taints.fields),
        taints_complete=taints.complete,
        taints_field="taints",
        effect_spelling="NO_SCHEDULE",
        bounds=((Ceiling("scalingConfig.maxSize", Ceiling.NODES, group.at("scalingConfig", "maxSize").number()),),),
    )


def _gpu_image(ami_type: Field) -> Tri:
    """Whether the image is one with NVIDIA's driver. One that nobody knows yet proves nothing, the machine does."""
    text = ami_type.text()
    return isinstance(text, str) and text.endswith(("_NVIDIA", "_x86_64_GPU"))


def _gpu_machines(group: Field) -> Tri:
    machines = group.at("instanceTypes")
    if machines.absent and not group.at("launchTemplate").absent:
        return UNKNOWN

    def has_gpus(machine: Field) -> Tri:
        text = machine.text()
        return UNKNOWN if text is UNKNOWN else is_gpu_machine(text or "")

    return machines.parts().any(has_gpus)
