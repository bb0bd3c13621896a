"""Readers of EKS managed node groups, of EC2 Auto Scaling groups whose instances are nodes, and of launch templates.

The groups may be self-managed, of kops or of cluster-autoscaler. A launch template names the machine if the group does not.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from flexspot.capacity.catalog.accelerators import NEURON, NVIDIA, ON_EC2, Accelerator
from flexspot.capacity.catalog.node_labels import INSTANCE_TYPE_LABEL
from flexspot.policies.inventory.gpu_machines import is_gpu_machine
from flexspot.policies.inventory.node_offer import EC2_NOTICE_SECONDS, NodeOffer, most_node_gpus
from flexspot.policies.inventory.views import Ceiling, GpuPool, Pool
from flexspot.policies.values.field import UNKNOWN, Field, Parts, Tri, Unknown, all_of, any_of, product

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from flexspot.policies.inventory.reading.source import ObjectSource


# Prefixes of labels that EKS, the kubelet and the cloud's controllers set on a node.
_CLOUDS = ("eks.amazonaws.com/", "kubernetes.io/", "node.kubernetes.io/", "topology.kubernetes.io/", "topology.k8s.aws/", "k8s.io/")


def read(source: ObjectSource) -> Iterator[Pool]:
    """Yield the `aws:eks` NodeGroup, as a GpuPool if it has GPUs.

    A group may or may not have GPUs (UNKNOWN) if its launch template is not known and its image does not decide it.
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
    named_machines = group.at("instanceTypes").parts()
    node_gpus = most_node_gpus(each.text() for each in named_machines.fields) if named_machines.complete else UNKNOWN
    most = group.at("scalingConfig", "maxSize").number()
    yield (Pool if concerned is False else GpuPool)(
        identity=source.identity,
        concerned=True if concerned is False else concerned,
        partial=False,
        evidence=next((name for name, answer in ((named, machines), ("amiType", image)) if answer is concerned), ""),
        taints=group.at("taints").parts(),
        taints_field="taints",
        effect_spelling="NO_SCHEDULE",
        bounds=((Ceiling("scalingConfig.maxSize", Ceiling.NODES, most),),),
        offer=_offer(group),
        spot=group.at("capacityType").equals("SPOT"),
        spot_field="capacityType",
        notice_seconds=Decimal(EC2_NOTICE_SECONDS),
        gpus=product(most, node_gpus),
        node_gpus=node_gpus,
        owner_labels=group.at("tags"),
        owner_field="tags",
        resources=_resources(
            (each.text() for each in named_machines.fields), NEURON if str(group.at("amiType").text()).endswith(_NEURON_IMAGE) else NVIDIA
        ),
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


def _gpu_image(ami_type: Field) -> Tri:
    """Return whether the image has NVIDIA's driver or AWS's for Neuron. An unknown image proves nothing; the machine does."""
    text = ami_type.text()
    return isinstance(text, str) and text.endswith(("_NVIDIA", "_x86_64_GPU", _NEURON_IMAGE))


# EKS's own images without NVIDIA's driver. https://docs.aws.amazon.com/eks/latest/APIReference/API_Nodegroup.html
_PLAIN_IMAGES = frozenset(
    {"AL2_x86_64", "AL2_ARM_64", "AL2023_x86_64_STANDARD", "AL2023_ARM_64_STANDARD", "BOTTLEROCKET_x86_64", "BOTTLEROCKET_ARM_64"}
)


_NEURON_IMAGE = "_NEURON"


def _resources(machines: Iterable[object], otherwise: Accelerator = NVIDIA) -> tuple[str, ...]:
    """Return the GPU resources of the machines that a group names, or of `otherwise` if it names none."""
    named = [each for each in machines if isinstance(each, str)]
    kinds = [kind for kind in ON_EC2 if any(is_gpu_machine(name, (kind,)) for name in named)]
    return tuple(kind.resource for kind in kinds or [otherwise])


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
"""Resources that are templates, each with the field of its machine settings."""

PROPERTIES: Final = ("launchTemplate", "mixedInstancesPolicy")
"""Fields by which a group names its template."""

_GROUPS: Final = {
    ("aws:eks", "NodeGroup"),
    ("aws-native:eks", "Nodegroup"),
    ("aws:autoscaling", "Group"),
    ("aws-native:autoscaling", "AutoScalingGroup"),
}
_NAMES: Final = ("name", "launchTemplateName")


def takes_template(source: ObjectSource) -> bool:
    """Return whether the resource is a group that names a template."""
    return (source.family, source.kind) in _GROUPS and not _named(source.fields).absent


def is_template(source: ObjectSource) -> bool:
    """Return whether the resource is a launch template."""
    return (source.family, source.kind) in _TEMPLATES


def with_template(group: ObjectSource, referred: Iterable[ObjectSource], others: Iterable[ObjectSource]) -> ObjectSource:
    """Return the group with its template: one that it refers to (`referred`), or one of `others` with the name.

    Unchanged if there is no template, or several are possible. A pinned version counts as the declared one.
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
    """Return the group's reference to its template."""
    own = group.at("launchTemplate")
    return own if not own.absent else group.at("mixedInstancesPolicy", "launchTemplate", "launchTemplateSpecification")


def _of_name(group: Field, templates: Collection[ObjectSource]) -> list[ObjectSource]:
    named = {text for name in _NAMES if isinstance(text := _named(group).at(name).text(), str)}
    return [each for each in templates if any(each.fields.at(name).text() in named for name in _NAMES)] if named else []


_KINDS: Final = {("aws:autoscaling", "Group"), ("aws-native:autoscaling", "AutoScalingGroup")}

_OF_CLUSTERS: Final = ("kubernetes.io/cluster/", "k8s.io/cluster-autoscaler/", "k8s.io/cluster/")
"""Prefixes of the tags by which nodes join a cluster and cluster-autoscaler finds its groups."""

_TEMPLATE: Final = "k8s.io/cluster-autoscaler/node-template/"
"""Tags that describe future nodes to cluster-autoscaler: `label/KEY`, and `taint/KEY` with VALUE:EFFECT.

kubernetes/autoscaler, cluster-autoscaler/cloudprovider/aws/README.md, "Auto-Discovery Setup" (2026-11-26).
"""

_TAINTS: Final = f"{_TEMPLATE}taint/"


def read_auto_scaling_group(source: ObjectSource) -> Iterator[Pool]:
    """Yield the group if its tags say that it belongs to a cluster, as a GpuPool if it has GPUs.

    User data contains its nodes' labels and taints and is not read, so facts that the group does not state may exist elsewhere. Its launch
    template may name its machine.
    """
    if (source.family, source.kind) not in _KINDS:
        return
    group = source.fields
    tags, complete = _tags(group)
    of_cluster = any_of([*(key.startswith(_OF_CLUSTERS) for key in tags), *([] if complete else [UNKNOWN])])
    if of_cluster is False:
        return
    machines, by = _machines(group, source.template)
    gpus = machines if machines is UNKNOWN else any_of(UNKNOWN if each is UNKNOWN else is_gpu_machine(str(each)) for each in machines)
    concerned = all_of([of_cluster, gpus])
    of_one = machines if machines is UNKNOWN else most_node_gpus(machines)
    most = group.at("maxSize").number()
    yield (Pool if gpus is False else GpuPool)(
        identity=source.identity,
        concerned=of_cluster if gpus is False else concerned,
        partial=True,
        evidence=by,
        taints=Parts(tuple((key, _taint(key, value)) for key, value in tags.items() if key.startswith(_TAINTS)), complete=False),
        taints_field=f"tags {_TAINTS}",
        effect_spelling="NoSchedule",
        bounds=((Ceiling("maxSize", Ceiling.NODES, most),),),
        offer=_group_offer(tags, machines),
        spot=_spot(group, source.template),
        spot_field="mixedInstancesPolicy.instancesDistribution.onDemandPercentageAboveBaseCapacity",
        notice_seconds=Decimal(EC2_NOTICE_SECONDS),
        gpus=product(most, of_one),
        node_gpus=of_one,
        owner_labels=Field({key: value.value for key, value in tags.items()}) if complete else Field(UNKNOWN),
        owner_field="tags",
        resources=_resources(() if machines is UNKNOWN else machines),
    )


def _tags(group: Field) -> tuple[dict[str, Field], bool]:
    """Return the tags by key, and whether the list is complete."""
    listed = group.at("tags").parts()
    keys = [(each.at("key").text(), each.at("value")) for each in listed.fields]
    return {key: value for key, value in keys if isinstance(key, str)}, listed.complete and all(key is not UNKNOWN for key, _ in keys)


def _machines(group: Field, template: Field) -> tuple[list[str | Unknown | None] | Unknown, str]:
    """Return the machines that the group names in place of its launch template's, or else the template's; and their field."""
    overrides = group.at("mixedInstancesPolicy", "launchTemplate", "overrides").parts()
    named = [each.at("instanceType").text() for each in overrides.fields]
    machine = template.at("instanceType").text()
    if overrides.complete and not named and isinstance(machine, str):
        return [machine], "the instanceType of its launch template"
    return named if named and None not in named and overrides.complete else UNKNOWN, "mixedInstancesPolicy.launchTemplate.overrides"


def _taint(tag: str, value: Field) -> Field:
    text = value.text()
    own, _, effect = text.rpartition(":") if isinstance(text, str) else (UNKNOWN, "", UNKNOWN)
    return Field({"key": tag.removeprefix(_TAINTS), "value": own or None if isinstance(own, str) else own, "effect": effect})


def _group_offer(tags: dict[str, Field], machines: list[str | Unknown | None] | Unknown) -> NodeOffer:
    prefix = f"{_TEMPLATE}label/"
    labels = {key.removeprefix(prefix): value for key, value in tags.items() if key.startswith(prefix)}
    if machines is not UNKNOWN and len(machines) == 1:
        labels[INSTANCE_TYPE_LABEL] = Field(machines[0])
    return NodeOffer(fixed=labels, complete=False)


def _spot(group: Field, template: Field) -> Tri:
    """Return whether the group uses Spot: its distribution has less than 100 % on-demand, or without one its template requests Spot."""
    if group.at("mixedInstancesPolicy").absent and isinstance(template.value, dict):
        return template.at("instanceMarketOptions", "marketType").equals("spot")
    distribution = group.at("mixedInstancesPolicy", "instancesDistribution")
    share = distribution.at("onDemandPercentageAboveBaseCapacity").number()
    if distribution.absent or share is UNKNOWN:
        return UNKNOWN
    # The default is 100. https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstancesDistribution.html
    return isinstance(share, Decimal) and share < 100  # noqa: PLR2004 -- percent
