"""EfaPlacementGroup: instances close to one another, in a group of a name that fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from components.karpenter.ec2_node_class import EfaPlacementGroup, EfaPlacementGroupArgs

GROUP = "aws:ec2/placementGroup:PlacementGroup"

Register = Callable[[Callable[[], object]], Any]


def args(**changes: Any) -> EfaPlacementGroupArgs:
    arguments: EfaPlacementGroupArgs = {"cluster": "platform", "pool": "h100-reserved", "tags": {"environment": "prod", "owner": "ann"}}
    arguments.update(changes)  # pyrefly: ignore[no-matching-overload] -- what is wrong on purpose, too
    return arguments


def test_a_pool_has_a_cluster_placement_group_of_its_own(register: Register) -> None:
    made: list[EfaPlacementGroup] = []
    names: list[str] = []
    parents: dict[str, pulumi.Resource | None] = {}

    def record(resource: pulumi.ResourceTransformationArgs) -> None:
        parents[resource.name] = resource.opts.parent

    def declare() -> None:
        pulumi.runtime.register_stack_transformation(record)
        made.append(EfaPlacementGroup("h100", args()))
        made[0].name.apply(names.append)

    [group] = register(declare).of(GROUP)

    assert group == {
        "name": "platform-h100-reserved",
        "strategy": "cluster",
        "tags": {"Name": "platform-h100-reserved", "environment": "prod", "owner": "ann"},
    }
    assert names == ["platform-h100-reserved"]
    assert parents == {"h100": None, "h100-placement-group": made[0]}


def test_a_name_that_is_too_long_is_cut_with_a_hash_so_that_two_pools_stay_apart(register: Register) -> None:
    names = [
        register(lambda pool=pool: EfaPlacementGroup("h100", args(cluster="c" * 100, pool=pool))).of(GROUP)[0]["name"]
        for pool in ("p" * 160, "p" * 161)
    ]

    assert [len(name) for name in names] == [255, 255]
    assert names[0] != names[1]


@pytest.mark.parametrize("argument", ["cluster", "pool"])
def test_an_empty_name_is_refused_before_anything_is_registered(argument: str, register: Register) -> None:
    def declare() -> None:
        with pytest.raises(ValueError, match=f"EfaPlacementGroup h100: {argument} is ''; it is part of the group's name; give the"):
            EfaPlacementGroup("h100", args(**{argument: ""}))

    assert register(declare).resources == []
