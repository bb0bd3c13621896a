"""Names that would have two meanings."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import told

from capacity.plan.checks.classes import (
    names_are_unique,
    pools_do_not_take_a_name_of_the_platform,
    teams_do_not_take_a_namespace_of_the_cluster,
)


def test_the_third_of_a_name_is_told_too() -> None:
    thrice: dict[str, Any] = {"teams.1": {"name": "red"}, "teams.2": {"name": "red"}}

    assert told(names_are_unique, "local", thrice) == ["refused: duplicate-name at teams.1.name", "refused: duplicate-name at teams.2.name"]


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "kube-node-lease", "kueue-system", "karpenter", "gmp-system"])
def test_a_team_is_not_called_like_a_namespace_of_the_cluster(name: str) -> None:
    assert told(teams_do_not_take_a_namespace_of_the_cluster, "local", {"teams.0.name": name}) == ["refused: reserved-name at teams.0.name"]
    assert told(teams_do_not_take_a_namespace_of_the_cluster, "local", {"teams.0.name": f"team-{name}"}) == []


@pytest.mark.parametrize(
    "cloud,name", [("gke", "system"), ("gke", "default-pool"), ("gke", "nap-1"), ("eks", "other-work"), ("local", "other-work")]
)
def test_a_pool_is_not_called_like_one_that_the_cluster_has_by_itself(cloud: str, name: str) -> None:
    assert told(pools_do_not_take_a_name_of_the_platform, cloud, {"pools.0.name": name}) == ["refused: reserved-name at pools.0.name"]
    assert told(pools_do_not_take_a_name_of_the_platform, cloud, {"pools.0.name": f"my-{name}"}) == []
    assert told(pools_do_not_take_a_name_of_the_platform, "eks" if cloud == "gke" else "gke", {"pools.0.name": name}) == []
