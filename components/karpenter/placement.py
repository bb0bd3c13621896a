"""Instances close to one another, for traffic between them."""

from typing import TypedDict

import pulumi
from pulumi_aws import ec2

from components.fitted_name import fitted

PLACEMENT_GROUP_CHARACTERS = 255
"""EC2's limit for the name (API reference, CreatePlacementGroup)."""


class EfaPlacementGroupArgs(TypedDict):
    """Arguments of EfaPlacementGroup."""

    cluster: str
    """The cluster's name."""

    pool: str
    """The pool's name; the group serves it alone."""

    tags: dict[str, str]
    """Tags of the group."""


class EfaPlacementGroup(pulumi.ComponentResource):
    """A cluster placement group for the nodes of one pool, so that EFA traffic between them takes the shortest way.

    Its nodes are in one zone, that of the first of them, and launches fail more often for want of capacity there: give the NodePool a zone.
    The name is CLUSTER-POOL, unique in the account's region, cut with a hash at 255 characters. Another name replaces the group.

    Raises ValueError for an empty cluster or pool name, before anything is registered.
    """

    name: pulumi.Output[str]
    """The group's name, known once it is there."""

    def __init__(self, name: str, args: EfaPlacementGroupArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        for argument in ("cluster", "pool"):
            if not args[argument]:
                raise ValueError(f"EfaPlacementGroup {name}: {argument} is ''; it is part of the group's name; give the {argument}'s name")
        super().__init__("flexspot:index:EfaPlacementGroup", name, {**args}, opts)
        group_name = fitted(f"{args['cluster']}-{args['pool']}", PLACEMENT_GROUP_CHARACTERS)
        group = ec2.PlacementGroup(
            f"{name}-placement-group",
            name=group_name,
            strategy="cluster",
            tags=args["tags"] | {"Name": group_name},
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = group.name
        self.register_outputs({"name": self.name})
