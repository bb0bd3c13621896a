"""What each capacity type asks of a pool, and what it must not be combined with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.capacity_type import CapacityType
from capacity.planning.pools import max_run_seconds
from capacity.settings.eks_pools import EksPool, ReservationKind
from capacity.settings.problems import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.planning.ground import Ground

_HOUR = 3600


def reservations_belong_to_reserved_pools(ground: Ground) -> Iterator[SettingsProblem]:
    """A reserved pool of EKS says which reservation, and no other pool does."""
    for pool in ground.pools.values():
        if not isinstance(pool.settings, EksPool):
            continue
        reserved, path = pool.settings.capacity_type is CapacityType.RESERVED, f"{pool.path}.reservation"
        if reserved and pool.settings.reservation is None:
            problem = "is missing: a reserved pool draws on a reservation"
            yield SettingsProblem(path, "", problem, "name it, or choose another capacity_type", "reserved-pool-without-reservation")
        if not reserved and pool.settings.reservation is not None:
            problem = f"does not go with capacity_type {pool.settings.capacity_type}"
            yield SettingsProblem(path, "", problem, "leave it out, or make the pool reserved", "reservation-not-used")


def a_capacity_block_is_in_one_zone(ground: Ground) -> Iterator[SettingsProblem]:
    """A capacity block is sold in one zone; a pool in others would ask for what is not there."""
    for pool in ground.pools.values():
        block = isinstance(pool.settings, EksPool) and pool.settings.reservation and pool.settings.reservation.kind
        if block is ReservationKind.CAPACITY_BLOCK and len(pool.settings.zones or ground.zones) != 1:
            written = ", ".join(pool.settings.zones) or "(all)"
            yield SettingsProblem(
                f"{pool.path}.zones", written, "a capacity block is in one zone", "name that zone alone", "capacity-block-without-zone"
            )


def work_fits_into_the_run_time(ground: Ground) -> Iterator[SettingsProblem]:
    """A node that ends before a job's limit takes the job with it, whatever a PodDisruptionBudget says."""
    for pool in ground.pools.values():
        end = max_run_seconds(ground, pool)
        for name in sorted(set(pool.settings.serves) & set(ground.classes)):
            each = ground.classes[name]
            if end is None or (each.run_limit_hours is not None and each.run_limit_hours * _HOUR <= end):
                continue
            limit = "no run_limit_hours" if each.run_limit_hours is None else f"run_limit_hours {each.run_limit_hours}"
            problem = f"its nodes end after {end // _HOUR} hours, but class {name} has {limit}"
            remedy = f"set run_limit_hours of {name} to {end // _HOUR} or less, or let it write checkpoints"
            yield SettingsProblem(f"{pool.path}.serves", name, problem, remedy, "run-limit-beyond-nodes", refused=not each.checkpoint)


CHECKS = (
    reservations_belong_to_reserved_pools,
    a_capacity_block_is_in_one_zone,
    work_fits_into_the_run_time,
)
