"""How people of a team get into an EKS cluster: access entries of their roles of IAM."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import re
from typing import NotRequired, TypedDict

import pulumi
from pulumi_aws import eks

from flexspot.capacity.catalog.platform import PARTITIONS
from flexspot.capacity.settings.teams import RESERVED_GROUPS
from flexspot.capacity.values.names import IAM_ROLE
from flexspot.components.cloud_names import check_choice, check_form
from flexspot.components.shared_args import publish


class EksTeamLoginsArgs(TypedDict):
    """Arguments of EksTeamLogins."""

    cluster_name: pulumi.Input[str]
    """The cluster's name as an output of the cluster: the entries wait for it."""

    groups: dict[str, list[str]]
    """Kubernetes groups by role ARN, path included: whoever assumes the role is in these groups; at least one each."""

    partition: NotRequired[str]
    """The partition of the cluster: aws, aws-cn or aws-us-gov. Default: aws."""

    tags: NotRequired[dict[str, str]]
    """Tags of the entries. Default: none."""


class EksTeamLogins(pulumi.ComponentResource):
    """An access entry for each role, with its groups. The entry itself gives nothing: RoleBindings say what a group may do.

    The entries are of type STANDARD, whose roles may be of another account; the cluster's authentication mode must be API or
    API_AND_CONFIG_MAP (EKS user guide, "Create access entries"). A role that has an entry, such as that of whoever made the cluster, is
    refused by EKS as "already in use". A role that was deleted and made anew needs a new entry: EKS remembers which one it was.

    Raises ValueError for what is no role, roles of another partition, roles without groups, and groups that EKS keeps for itself. Nothing
    here was applied to a live account.
    """

    groups: pulumi.Output[dict[str, list[str]]]
    """The groups of each role, by its ARN, known once all entries are there."""

    def __init__(self, name: str, args: EksTeamLoginsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        partition, tags = args.get("partition", "aws"), args.get("tags", {})
        _check(f"EksTeamLogins {name}:", partition, args["groups"])
        super().__init__("flexspot:index:EksTeamLogins", name, {**args, "partition": partition, "tags": tags}, opts)
        entries = [
            eks.AccessEntry(
                # The account too: roles of two accounts may be called the same. The path too: the ARN is the entry's key.
                f"{name}-{role.split(':')[4]}-{role.partition(':role/')[2]}",
                cluster_name=args["cluster_name"],
                principal_arn=role,
                type="STANDARD",
                kubernetes_groups=sorted(set(groups)),
                tags=tags,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for role, groups in sorted(args["groups"].items())
        ]
        self.groups = pulumi.Output.all(*(each.id for each in entries)).apply(lambda _: args["groups"])
        publish(self)


def _check(where: str, partition: str, groups: dict[str, list[str]]) -> None:
    check_choice(f"{where} partition", partition, list(PARTITIONS))
    for role, named in groups.items():
        check_form(f"{where} groups names {role!r}, which", role, IAM_ROLE)
        if not re.match(rf"arn:{re.escape(partition)}:", role):
            raise ValueError(f"{where} groups names {role}, a role of another partition than {partition}; name a role of the cluster's own")
        if not named:
            raise ValueError(f"{where} groups has none for {role}, which could then do nothing; name one, or leave the role out")
        for group in named:
            if not group or group.startswith(RESERVED_GROUPS):
                raise ValueError(
                    f"{where} groups has {group!r} for {role}; EKS keeps what begins with {', '.join(RESERVED_GROUPS)}; choose another name"
                )
