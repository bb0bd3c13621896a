"""EKS's own options of a pool, with what they must agree with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.capacity_type import CapacityType
from capacity.settings.eks_pools import EksPool
from capacity.settings.problems import SettingsProblem, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.planning.ground import Ground


def efa_is_on_machines_that_have_it(ground: Ground) -> Iterator[SettingsProblem]:
    """A node class lists the network cards, so all machines of its pool must have the same number of them."""
    for pool in ground.pools.values():
        if not isinstance(pool.settings, EksPool) or not pool.settings.efa:
            continue
        path, first = f"{pool.path}.efa", pool.machines[0]
        if first.efa_interfaces == 0:
            with_efa = sorted(each.name for each in ground.machines.values() if each.efa_interfaces and each.gpu)
            problem = f"{first.name} has no EFA interface"
            yield SettingsProblem(
                path, "true", problem, f"leave it out; of machines, {nearest(first.name, with_efa)}", "efa-without-interface"
            )
        for number, other in enumerate(pool.machines[1:]):
            if first.efa_interfaces not in {0, other.efa_interfaces}:
                problem = f"has {other.efa_interfaces} EFA interfaces, but {first.name} has {first.efa_interfaces}"
                remedy = "the machines of a pool with efa have as many; make it a pool of its own"
                yield SettingsProblem(f"{pool.path}.alternatives.{number}", repr(other.name), problem, remedy, "mixed-efa-in-pool")


def a_placement_group_is_in_one_zone(ground: Ground) -> Iterator[SettingsProblem]:
    """A cluster placement group is of one zone: its nodes would all be in whichever zone came first.

    A capacity reservation is used from within a group only if it was made in that very group, which is not there before the platform is.
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html#placement-groups-cluster
    """
    for pool in ground.pools.values():
        if not isinstance(pool.settings, EksPool) or not pool.settings.compact_placement:
            continue
        path = f"{pool.path}.compact_placement"
        if pool.settings.capacity_type is CapacityType.RESERVED:
            problem = "does not go with a reservation, which is used from no group but the one that it was made in"
            yield SettingsProblem(path, "true", problem, "leave it out; reserve the capacity close together", "compact-reservation")
        elif len(pool.settings.zones or ground.zones) != 1:
            problem = "needs a pool in one zone, as a cluster placement group is"
            yield SettingsProblem(path, "true", problem, "set the pool's zones to one", "compact-over-zones")


CHECKS = (efa_is_on_machines_that_have_it, a_placement_group_is_in_one_zone)
