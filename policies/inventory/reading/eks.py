"""EKS managed node groups; and EC2 launch templates, where the machine of one or of an auto scaling group stands if neither names it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from capacity.catalog.accelerators import NEURON, NVIDIA, ON_EC2
from capacity.catalog.node_labels import INSTANCE_TYPE_LABEL
from policies.inventory.gpu_machines import is_gpu_machine
from policies.inventory.node_offer import EC2_NOTICE_SECONDS, NodeOffer, most_node_gpus
from policies.inventory.views import Ceiling, GpuPool, Pool, Taint
from policies.values.field import UNKNOWN, Field, Tri, Unknown, any_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from policies.inventory.reading.source import Source


# What EKS, the kubelet and the cloud's controllers label a node with.
_CLOUDS = ("eks.amazonaws.com/", "kubernetes.io/", "node.kubernetes.io/", "topology.kubernetes.io/", "topology.k8s.aws/", "k8s.io/")


def read(source: Source) -> Iterator[Pool]:
    """The `aws:eks` NodeGroup; a GpuPool if it has GPUs.

    A group that takes its machine from a launch template that is not known, and whose image does not say which machines it is for, may or
    may not have GPUs: UNKNOWN.
    """
    if (source.family, source.kind) != ("aws:eks", "NodeGroup"):
        return
    group, machine = source.fields, source.template.at("instanceType")
    by_template = group.at("instanceTypes").absent and isinstance(machine.text(), str)
    if by_template:
        group = Field({**group.value, "instanceTypes": [machine.value]}, group.partial)
    named = "the instanceType of its launch template" if by_template else "instanceTypes"
    image = _gpu_image(group.at("amiType"))
    machines = _gpu_machines(group, group.at("amiType"))
    concerned = any_of([image, machines])
    taints = group.at("taints").parts()
    yield (Pool if concerned is False else GpuPool)(
        identity=source.identity,
        concerned=True if concerned is False else concerned,
        partial=False,
        evidence=next((name for name, answer in ((named, machines), ("amiType", image)) if answer is concerned), ""),
        taints=tuple(Taint(taint.at("key"), taint.at("value"), taint.at("effect")) for taint in taints.fields),
        taints_complete=taints.complete,
        taints_field="taints",
        effect_spelling="NO_SCHEDULE",
        bounds=((Ceiling("scalingConfig.maxSize", Ceiling.NODES, group.at("scalingConfig", "maxSize").number()),),),
        offer=_offer(group),
        spot=group.at("capacityType").equals("SPOT"),
        spot_field="capacityType",
        notice_seconds=Decimal(EC2_NOTICE_SECONDS),
        gpus=_gpus(group),
        node_gpus=_node_gpus(group),
        owner_labels=group.at("tags"),
        owner_field="tags",
        resources=_resources(group),
    )


def _offer(group: Field) -> NodeOffer:
    labels, machines, name = group.at("labels").parts(), group.at("instanceTypes").parts(), group.at("nodeGroupName")
    capacity = group.at("capacityType")
    fixed = {
        **dict(labels.named),
        "eks.amazonaws.com/nodegroup": Field(UNKNOWN) if name.absent else name,
        "eks.amazonaws.com/capacityType": Field("ON_DEMAND") if capacity.absent else capacity,
    }
    if machines.complete and len(machines.fields) == 1:
        fixed[INSTANCE_TYPE_LABEL] = machines.fields[0]
    return NodeOffer(fixed=fixed, open_prefixes=_CLOUDS, complete=labels.complete)


def _node_gpus(group: Field) -> Decimal | Unknown | None:
    machines = group.at("instanceTypes").parts()
    return most_node_gpus(each.text() for each in machines.fields) if machines.complete else UNKNOWN


def _gpus(group: Field) -> Decimal | Unknown | None:
    """The most GPUs that the group can have; None where a machine is not in the catalog."""
    most, each = group.at("scalingConfig", "maxSize").number(), _node_gpus(group)
    if UNKNOWN in (most, each):
        return UNKNOWN
    return most * each if isinstance(most, Decimal) and isinstance(each, Decimal) else None


def _gpu_image(ami_type: Field) -> Tri:
    """Whether the image is one with NVIDIA's driver, or AWS's of Neuron. One that nobody knows yet proves nothing, the machine does."""
    text = ami_type.text()
    return isinstance(text, str) and text.endswith(("_NVIDIA", "_x86_64_GPU", _NEURON_IMAGE))


# EKS's own images without NVIDIA's driver. https://docs.aws.amazon.com/eks/latest/APIReference/API_Nodegroup.html
_PLAIN_IMAGES = frozenset(
    {"AL2_x86_64", "AL2_ARM_64", "AL2023_x86_64_STANDARD", "AL2023_ARM_64_STANDARD", "BOTTLEROCKET_x86_64", "BOTTLEROCKET_ARM_64"}
)


_NEURON_IMAGE = "_NEURON"


def _resources(group: Field) -> tuple[str, ...]:
    """What pods ask for its GPUs by: of the machines that it names, or else of its image."""
    machines = [text for each in group.at("instanceTypes").parts().fields if isinstance(text := each.text(), str)]
    kinds = [kind for kind in ON_EC2 if any(is_gpu_machine(name, (kind,)) for name in machines)]
    of_image = NEURON if str(group.at("amiType").text()).endswith(_NEURON_IMAGE) else NVIDIA
    return tuple(kind.resource for kind in kinds or [of_image])


def _gpu_machines(group: Field, ami_type: Field) -> Tri:
    machines = group.at("instanceTypes")
    if machines.absent and not group.at("launchTemplate").absent:
        # On an image without a driver no pod gets a GPU, whatever machine the template names.
        return False if ami_type.text() in _PLAIN_IMAGES else UNKNOWN

    def has_gpus(machine: Field) -> Tri:
        text = machine.text()
        return UNKNOWN if text is UNKNOWN else is_gpu_machine(text or "")

    return machines.parts().any(has_gpus)


_TEMPLATES: Final = {("aws:ec2", "LaunchTemplate"): "", ("aws-native:ec2", "LaunchTemplate"): "launchTemplateData"}
"""Resources that are templates, each with the field that holds what it says of machines."""

PROPERTIES: Final = ("launchTemplate", "mixedInstancesPolicy")
"""The fields by which a group names its template."""

_GROUPS: Final = {
    ("aws:eks", "NodeGroup"),
    ("aws-native:eks", "Nodegroup"),
    ("aws:autoscaling", "Group"),
    ("aws-native:autoscaling", "AutoScalingGroup"),
}
_NAMES: Final = ("name", "launchTemplateName")


def takes_template(source: Source) -> bool:
    """Whether it is a group that names a template."""
    return (source.family, source.kind) in _GROUPS and not _named(source.fields).absent


def is_template(source: Source) -> bool:
    """Whether it is a template."""
    return (source.family, source.kind) in _TEMPLATES


def with_template(group: Source, referred: Iterable[Source], others: Iterable[Source]) -> Source:
    """The group with its template: the one of those that it is `referred` to, or else the one of `others` that has the name.

    As it is where there is none, or where several may be meant. A version that is pinned is taken for the one that the template declares.
    """
    found = [each for each in referred if is_template(each)] or _of_name(group.fields, [each for each in others if is_template(each)])
    if len(found) != 1:
        return group
    [template] = found
    within = _TEMPLATES[template.family, template.kind]
    return replace(
        group, template=template.fields.at(within) if within else template.fields, secrets=group.secrets.joined(template.secrets)
    )


def _named(group: Field) -> Field:
    """What a group says of its template."""
    own = group.at("launchTemplate")
    return own if not own.absent else group.at("mixedInstancesPolicy", "launchTemplate", "launchTemplateSpecification")


def _of_name(group: Field, templates: Collection[Source]) -> list[Source]:
    named = {text for name in _NAMES if isinstance(text := _named(group).at(name).text(), str)}
    return [each for each in templates if any(each.fields.at(name).text() in named for name in _NAMES)] if named else []
