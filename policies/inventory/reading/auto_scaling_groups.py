"""EC2 Auto Scaling groups whose instances are nodes of a cluster: self-managed nodes, kops, and cluster-autoscaler's groups."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from capacity.catalog.accelerators import NVIDIA, ON_EC2
from capacity.catalog.node_labels import INSTANCE_TYPE_LABEL
from policies.inventory.gpu_machines import is_gpu_machine
from policies.inventory.node_offer import EC2_NOTICE_SECONDS, NodeOffer, most_node_gpus
from policies.inventory.views import Ceiling, GpuPool, Pool, Taint
from policies.values.field import UNKNOWN, Field, Tri, all_of, any_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.inventory.reading.source import Source
    from policies.values.field import Unknown

_KINDS: Final = {("aws:autoscaling", "Group"), ("aws-native:autoscaling", "AutoScalingGroup")}

_OF_CLUSTERS: Final = ("kubernetes.io/cluster/", "k8s.io/cluster-autoscaler/", "k8s.io/cluster/")
"""How the tags begin by which nodes join a cluster and cluster-autoscaler finds its groups."""

_TEMPLATE: Final = "k8s.io/cluster-autoscaler/node-template/"
"""What cluster-autoscaler is told of nodes that are not there yet: `label/KEY`, and `taint/KEY` with VALUE:EFFECT.

kubernetes/autoscaler, cluster-autoscaler/cloudprovider/aws/README.md, "Auto-Discovery Setup" (2026-11-26).
"""


def read(source: Source) -> Iterator[Pool]:
    """The group, if its tags say that it is of a cluster; a GpuPool if it has GPUs.

    Its nodes' labels and taints stand in user data, of which nothing is known here: what the group does not say is said elsewhere. Its
    machine may stand in its launch template.
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
    taints = [_taint(key.removeprefix(f"{_TEMPLATE}taint/"), value) for key, value in tags.items() if key.startswith(f"{_TEMPLATE}taint/")]
    concerned = all_of([of_cluster, gpus])
    of_one = machines if machines is UNKNOWN else most_node_gpus(machines)
    yield (Pool if gpus is False else GpuPool)(
        identity=source.identity,
        concerned=of_cluster if gpus is False else concerned,
        partial=True,
        evidence=by,
        taints=tuple(taints),
        taints_complete=False,
        taints_field=f"tags {_TEMPLATE}taint/",
        effect_spelling="NoSchedule",
        bounds=((Ceiling("maxSize", Ceiling.NODES, group.at("maxSize").number()),),),
        offer=_offer(tags, machines),
        spot=_spot(group, source.template),
        spot_field="mixedInstancesPolicy.instancesDistribution.onDemandPercentageAboveBaseCapacity",
        notice_seconds=Decimal(EC2_NOTICE_SECONDS),
        gpus=_gpus(group, of_one),
        node_gpus=of_one,
        owner_labels=Field({key: value.value for key, value in tags.items()}) if complete else Field(UNKNOWN),
        owner_field="tags",
        resources=_resources(machines),
    )


def _tags(group: Field) -> tuple[dict[str, Field], bool]:
    """The tags by key, which a group lists as entries; and whether there are no others."""
    listed = group.at("tags").parts()
    keys = [(each.at("key").text(), each.at("value")) for each in listed.fields]
    return {key: value for key, value in keys if isinstance(key, str)}, listed.complete and all(key is not UNKNOWN for key, _ in keys)


def _machines(group: Field, template: Field) -> tuple[list[str | Unknown | None] | Unknown, str]:
    """The machines that the group names itself, in place of its launch template's, or else that template's; and where they stand."""
    overrides = group.at("mixedInstancesPolicy", "launchTemplate", "overrides").parts()
    named = [each.at("instanceType").text() for each in overrides.fields]
    machine = template.at("instanceType").text()
    if overrides.complete and not named and isinstance(machine, str):
        return [machine], "the instanceType of its launch template"
    return named if named and None not in named and overrides.complete else UNKNOWN, "mixedInstancesPolicy.launchTemplate.overrides"


def _resources(machines: list[str | Unknown | None] | Unknown) -> tuple[str, ...]:
    """What pods ask for its GPUs by, of the machines that it names; GPUs of NVIDIA where it names none."""
    named = () if machines is UNKNOWN else tuple(each for each in machines if isinstance(each, str))
    kinds = [kind for kind in ON_EC2 if any(is_gpu_machine(name, (kind,)) for name in named)]
    return tuple(kind.resource for kind in kinds or [NVIDIA])


def _taint(key: str, value: Field) -> Taint:
    text = value.text()
    if not isinstance(text, str):
        return Taint(Field(key), Field(UNKNOWN), Field(UNKNOWN))
    own, _, effect = text.rpartition(":")
    return Taint(Field(key), Field(own or None), Field(effect))


def _offer(tags: dict[str, Field], machines: list[str | Unknown | None] | Unknown) -> NodeOffer:
    prefix = f"{_TEMPLATE}label/"
    labels = {key.removeprefix(prefix): value for key, value in tags.items() if key.startswith(prefix)}
    if machines is not UNKNOWN and len(machines) == 1:
        labels[INSTANCE_TYPE_LABEL] = Field(machines[0])
    return NodeOffer(fixed=labels, complete=False)


def _spot(group: Field, template: Field) -> Tri:
    """Whether the group takes Spot: by a distribution of less than 100 % on-demand; without one its template says."""
    if group.at("mixedInstancesPolicy").absent and isinstance(template.value, dict):
        return template.at("instanceMarketOptions", "marketType").equals("spot")
    distribution = group.at("mixedInstancesPolicy", "instancesDistribution")
    share = distribution.at("onDemandPercentageAboveBaseCapacity").number()
    if distribution.absent or share is UNKNOWN:
        return UNKNOWN
    # 100 where nobody says less. https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstancesDistribution.html
    return isinstance(share, Decimal) and share < 100  # noqa: PLR2004 -- percent


def _gpus(group: Field, each: Decimal | Unknown | None) -> Decimal | Unknown | None:
    most = group.at("maxSize").number()
    if UNKNOWN in (most, each):
        return UNKNOWN
    return most * each if isinstance(most, Decimal) and isinstance(each, Decimal) else None
