"""EfaPlacementGroup: instances close to each other, in a group with a name that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexspot.components.karpenter.ec2_node_class import EfaPlacementGroup, EfaPlacementGroupArgs

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register

GROUP = "aws:ec2/placementGroup:PlacementGroup"


def args(**changes: Any) -> EfaPlacementGroupArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {"cluster": "platform", "pool": "h100-reserved", "tags": {"environment": "prod", "owner": "ann"}} | changes


def test_a_pool_has_its_own_cluster_placement_group(register: Register, outputs: Outputs) -> None:
    [group] = register(lambda: EfaPlacementGroup("h100", args())).of(GROUP)

    assert group == {
        "name": "platform-h100-reserved",
        "strategy": "cluster",
        "tags": {"Name": "platform-h100-reserved", "environment": "prod", "owner": "ann"},
    }
    assert outputs(lambda: EfaPlacementGroup("h100", args())) == {"name": "platform-h100-reserved"}


def test_a_name_that_is_too_long_is_cut_with_a_hash_so_that_two_pools_differ(register: Register) -> None:
    names = [
        register(lambda pool=pool: EfaPlacementGroup("h100", args(cluster="c" * 100, pool=pool))).of(GROUP)[0]["name"]
        for pool in ("p" * 160, "p" * 161)
    ]

    assert [len(name) for name in names] == [255, 255]
    assert names[0] != names[1]


@pytest.mark.parametrize("argument", ["cluster", "pool"])
def test_an_empty_name_is_refused_before_anything_is_registered(argument: str, refusal: Refusal) -> None:
    assert f"{argument} (is ''): must not be empty: the group's name contains it" in refusal(
        EfaPlacementGroup, "h100", args(**{argument: ""})
    )
