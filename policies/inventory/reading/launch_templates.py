"""EC2 launch templates: where the machine of an EKS node group or of an auto scaling group stands, if the group itself names none."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from policies.inventory.reading.source import Source
    from policies.values.field import Field

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
