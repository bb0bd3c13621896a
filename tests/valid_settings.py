"""A hypothesis strategy for valid and plausible settings of every platform, from the shipped catalogs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from hypothesis import strategies as st

from flexspot.capacity.catalog.accelerators import TPU
from flexspot.capacity.catalog.capacity_type import CapacityType, facts_of
from flexspot.capacity.catalog.machines import Gpu, Machine, machines_of
from flexspot.capacity.catalog.platform import VOCABULARIES, Platform
from flexspot.capacity.catalog.workload_classes import Fallback, shipped_classes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy

T = TypeVar("T")

_DWS = frozenset({CapacityType.FLEX_START, CapacityType.QUEUED})

_PLACES: dict[Platform, list[dict[str, Any]]] = {
    Platform.LOCAL: [{}],
    Platform.GKE: [
        {"project": "acme-ai", "control_plane": {"access": "dns_iam"}},
        {"project": "acme-ai", "cluster": {"min_version": "1.35.0-gke.1171000", "release_channel": "stable"}},
    ],
    Platform.EKS: [
        {"account": "111122223333", "cluster": {"version": "1.35", "ami": "al2023@v20260903"}},
        {"account": "111122223333", "cluster": {"version": "1.34", "ami": "bottlerocket@1.65.0"}, "network": {"nat": "single"}},
        {"account": "111122223333", "cluster": {"version": "1.35", "ami": "al2023@latest"}},
    ],
}
"""A platform's settings other than capacity."""


@st.composite
def valid_settings(draw: DrawFn, platforms: Sequence[Platform] = tuple(Platform)) -> dict[str, Any]:
    """Draw valid settings of one of the platforms: `build_plan` accepts them, with warnings at most."""
    return _Draft(draw, platforms).settings()


class _Draft:
    """One draw of valid settings: first classes, then pools that can serve them, then teams that can use those."""

    def __init__(self, draw: DrawFn, platforms: Sequence[Platform]) -> None:
        self.draw = draw
        self.cloud = draw(st.sampled_from(list(platforms)))
        words = VOCABULARIES[self.cloud]
        # The lab has only Spot and on-demand.
        local = [CapacityType.SPOT, CapacityType.ON_DEMAND]
        self.capacity_types = local if self.cloud is Platform.LOCAL else list(facts_of(words.facts))
        # TPUs have separate rules for whole hosts and slices: tests/capacity/plan/test_tpu_plans.py.
        with_gpus = [each for each in machines_of(words.catalog).values() if each.gpu and each.gpu.accelerator is not TPU]
        regions = sorted({region for each in with_gpus for region in each.zones})
        self.region = "us-east-1" if self.cloud is Platform.LOCAL else draw(st.sampled_from(regions))
        known = sorted({zone for each in with_gpus for zone in each.zones.get(self.region, ())})
        self.zones = [] if self.cloud is Platform.LOCAL else self.some(known, 2, 3)
        self.machines = [each for each in with_gpus if self.offered(each)]
        # All classes keep one order, so that none contradicts another.
        self.order = draw(st.permutations(list(CapacityType)))
        self.compute_classes: dict[str, tuple[str, ...]] = {}
        self.manufacturers: dict[str, str] = {}
        self.classes = self.some_classes()
        self.pools: list[dict[str, Any]] = []
        self.units: dict[str, int] = {}
        for number in range(draw(st.integers(1, 5))):
            self.add_pool(f"pool-{number}")

    def some(self, values: Sequence[T], least: int, most: int) -> list[T]:
        """Draw some of `values`, in their order."""
        if not values:
            return []
        indices = st.lists(st.integers(0, len(values) - 1), min_size=least, max_size=min(most, len(values)), unique=True)
        return [values[index] for index in sorted(self.draw(indices))]

    def maybe(self, strategy: SearchStrategy[Any], name: str) -> dict[str, Any]:
        return {name: self.draw(strategy)} if self.draw(st.booleans()) else {}

    def offered(self, machine: Machine, zones: Sequence[str] = ()) -> bool:
        offered = set(machine.zones.get(self.region, ()))
        if not machine.zones:
            return True
        # All of a pool's own zones must have the machine, or at least one of the platform's.
        return bool(offered) and (set(zones) <= offered if zones else not self.zones or bool(set(self.zones) & offered))

    def some_classes(self) -> dict[str, dict[str, Any]]:
        """Draw shipped classes with all relevant fields changed, and user-defined classes."""
        shipped = shipped_classes()
        names = self.some([*shipped, "sweep", "service"], 1, 4)
        classes: dict[str, dict[str, Any]] = {}
        for name in names:
            queued, checkpoint = self.draw(st.sampled_from([True, True, False])), self.draw(st.booleans())
            fallback = self.draw(st.sampled_from(list(Fallback)))
            limit = self.draw(st.integers(1, 160) | st.none())
            preempts = not queued and self.draw(st.booleans())
            fields = {
                "queued": queued,
                "preempts": preempts,
                "fallback": fallback.value,
                "checkpoint": checkpoint,
                "run_limit_hours": limit,
            }
            usable = [each for each in self.capacity_types if _can_use(fields, each)]
            used = {self.draw(st.sampled_from(usable)), *self.some(list(CapacityType), 0, 3)}
            classes[name] = fields | {"capacity": [each.value for each in self.order if each in used]}
            if name not in shipped:
                disruption = {"remove": self.draw(st.sampled_from(["empty", "underutilized"])), "idle_seconds": 60}
                more = {"description": "One's own.", "priority_class": f"own-{name}", "priority": 7, "grace_seconds": 30}
                classes[name] |= {**more, "disruption": disruption, "disruption_budget": False}
        return classes

    def add_pool(self, name: str) -> None:
        lead = self.draw(st.sampled_from(sorted(self.classes)))
        kind = self.draw(st.sampled_from([each for each in self.capacity_types if self.fits(lead, each)]))
        climbs = self.classes[lead]["fallback"] == Fallback.STOCK_OUT
        mates = [each for each in sorted(self.classes) if self.classes[each]["fallback"] == self.classes[lead]["fallback"]]
        mates = [each for each in mates if each != lead and self.fits(each, kind)]
        zones = self.some(self.zones, 1, len(self.zones)) if self.zones and self.draw(st.booleans()) else []
        block = self.cloud is Platform.EKS and kind is CapacityType.RESERVED and len(zones) == 1
        machines = [each for each in self.machines if self.offered(each, zones) and _sold(each, kind)]
        serves = (lead, *self.some(mates, 0, 2))
        if climbs and self.cloud is Platform.GKE:
            # A pool is in one compute class, and a compute class that is a flavor has one kind of GPU.
            serves = (lead,)
            if lead in self.compute_classes:
                machines = [each for each in machines if _gpu(each).name in self.compute_classes[lead]]
        machines = [each for each in machines if self.suits(serves, each)]
        machine = self.draw(st.sampled_from(machines)) if machines else None
        if machine is not None and climbs and self.cloud is not Platform.GKE:
            # All pools of an accelerator are one flavor, so they serve the same classes.
            serves = self.compute_classes.setdefault(_gpu(machine).name, serves)
        elif machine is not None and climbs and self.classes[lead]["queued"]:
            self.compute_classes[lead] = (_gpu(machine).name,)
        if machine is None or not all(self.fits(each, kind) for each in serves) or not self.suits(serves, machine):
            return
        self.manufacturers |= dict.fromkeys(serves, _gpu(machine).manufacturer)
        each_node = self.draw(st.sampled_from(_gpu(machine).counts))
        more = self.capacity_fields(kind, block=block) | self.size(machine, each_node, kind, zones)
        gpus = {"gpus_per_node": each_node} if each_node != _gpu(machine).count or self.draw(st.booleans()) else {}
        pool = {"name": name, "machine": machine.name, "capacity_type": kind.value, "serves": list(serves), **gpus, **more}
        # Pools of one flavor may have nodes of different sizes only if pods may use parts of them.
        partial = climbs or self.draw(st.booleans())
        self.units[name] = 1 if partial else each_node
        self.pools.append(pool | ({"zones": zones} if zones else {}) | ({"node_sharing": True} if partial else {}))

    def suits(self, serves: Sequence[str], machine: Machine) -> bool:
        """Return whether all served classes then have accelerators of one manufacturer."""
        return all(self.manufacturers.get(name, _gpu(machine).manufacturer) == _gpu(machine).manufacturer for name in serves)

    def fits(self, name: str, kind: CapacityType) -> bool:
        return kind in self.classes[name]["capacity"] and _can_use(self.classes[name], kind)

    def capacity_fields(self, kind: CapacityType, *, block: bool) -> dict[str, Any]:
        if kind is CapacityType.RESERVED and self.cloud is Platform.GKE:
            bought = [{"name": "bought"}, {"use": "any"}, {"name": "bought", "block": "one", "sub_block": "two"}]
            return {"reservation": self.draw(st.sampled_from(bought))}
        if kind is CapacityType.RESERVED:
            kinds = ["on-demand", "capacity-block"] if block else ["on-demand"]
            return {"reservation": {"kind": self.draw(st.sampled_from(kinds)), "tags": {"purpose": "gpu"}}}
        if kind is CapacityType.SPOT and self.cloud is Platform.GKE:
            return self.maybe(st.integers(30, 120), "shutdown_grace_seconds")
        return self.maybe(st.integers(160, 168), "max_run_hours") if kind is CapacityType.FLEX_START else {}

    def size(self, machine: Machine, each_node: int, kind: CapacityType, zones: list[str]) -> dict[str, Any]:
        nodes = self.draw(st.integers(1, 6))
        ceilings: list[dict[str, Any]] = [{"max_nodes": nodes}, {"max_gpus": nodes * each_node}]
        size = self.draw(st.sampled_from([*ceilings, ceilings[0] | ceilings[1]]))
        alike = [each for each in self.machines if (_gpu(each).model, _gpu(each).name) == (_gpu(machine).model, _gpu(machine).name)]
        alike = [each for each in alike if each is not machine and each_node in _gpu(each).counts and self.offered(each, zones)]
        others = self.some(alike, 0, 2) if alike and self.cloud is not Platform.GKE else []
        need = nodes * max(each.memory_mib for each in (machine, *others)) // 1024
        size |= self.maybe(st.integers(need, need + 100), "max_memory_gib")
        floor = {} if kind in _DWS or self.cloud is not Platform.GKE else self.maybe(st.integers(0, nodes), "min_nodes")
        return size | floor | ({"alternatives": [each.name for each in others]} if others else {})

    def settings(self) -> dict[str, Any]:
        served = {name for pool in self.pools for name in pool["serves"]}
        left = {pool["name"]: _ceiling(pool) for pool in self.pools}
        queued = [pool["name"] for pool in self.pools if any(self.classes[name]["queued"] for name in pool["serves"])]
        unqueued = [pool["name"] for pool in self.pools if any(not self.classes[name]["queued"] for name in pool["serves"])]
        teams: list[dict[str, Any]] = [{"name": f"team-{number}"} for number in range(self.draw(st.integers(1, 4)))]
        for number, team in enumerate(teams):
            team["unqueued"] = {}
            for name in unqueued:
                # A pool that serves both kinds must leave GPUs to the unqueued classes. Other pools need not.
                least = 1 if name in queued and number == 0 else 0
                unit = self.units[name]
                gpus = unit * self.draw(st.integers(least, max(least, left[name] // unit if name in queued else 20)))
                left[name] -= gpus
                team["unqueued"] |= {name: gpus} if gpus else {}
        cohorts = self.some_cohorts()
        for owner in (*cohorts, *teams):
            owner.update(self.shares(queued, left), **self.maybe(st.integers(1, 9), "weight"))
        for team in teams:
            team.update(self.maybe(st.sampled_from([each["name"] for each in cohorts]), "cohort") if cohorts else {})
            team.update(self.maybe(st.integers(1, 10**6), "monthly_budget_usd"))
            team.update(self.maybe(st.integers(1, 500), "max_pods"))
            team.update(self.maybe(st.sampled_from(["none", "hold", "drain"]), "stop"))
            # At most a quarter of the capacity for each of up to four teams.
            own = st.fixed_dictionaries({"vcpu": st.integers(0, 16), "memory_gib": st.integers(0, 64)})
            team.update(self.maybe(own, "cpu_work"))
        place = dict(self.draw(st.sampled_from(_PLACES[self.cloud])))
        unpinned = "latest" in str(place)
        budget = self.maybe(st.integers(1, 10**6), "monthly_usd")
        return {
            "cloud": self.cloud.value,
            "environment": self.draw(st.sampled_from(["dev"] if unpinned else ["dev", "prod", "test"])),
            "owner": "ann",
            **place,
            **({} if self.cloud is Platform.LOCAL else {"region": self.region, "zones": self.zones}),
            "cohorts": cohorts,
            "pools": self.pools,
            "classes": {name: fields for name, fields in self.classes.items() if name in served},
            "teams": teams,
            **({"budget": budget | self.maybe(st.sampled_from(["warn", "refuse"]), "on_unknown_prices")} if budget else {}),
        }

    def some_cohorts(self) -> list[dict[str, Any]]:
        cohorts: list[dict[str, Any]] = []
        for number in range(self.draw(st.integers(0, 3))):
            parents = [each["name"] for each in cohorts]
            parent = self.maybe(st.sampled_from(parents), "parent") if parents else {}
            cohorts.append({"name": f"cohort-{number}", **parent})
        return cohorts

    def shares(self, queued: list[str], left: dict[str, int]) -> dict[str, dict[str, int]]:
        fields: dict[str, dict[str, int]] = {"shares": {}, "borrowing_limits": {}, "lending_limits": {}}
        for name in self.some(queued, 0, len(queued)):
            unit = self.units[name]
            nodes = self.draw(st.integers(0, left[name] // unit))
            gpus = fields["shares"][name] = unit * nodes
            left[name] -= gpus
            fields["borrowing_limits"] |= self.maybe(st.integers(0, 40).map(lambda each, unit=unit: unit * each), name)
            fields["lending_limits"] |= self.maybe(st.integers(0, nodes).map(lambda each, unit=unit: unit * each), name)
        return fields


def _sold(machine: Machine, kind: CapacityType) -> bool:
    return machine.flex_start if kind in _DWS else machine.on_demand or kind is not CapacityType.ON_DEMAND


def _gpu(machine: Machine) -> Gpu:
    assert machine.gpu is not None
    return machine.gpu


def _ceiling(pool: dict[str, Any]) -> int:
    """Return the ceiling in GPUs that settings give a pool."""
    catalogs = (machines_of(words.catalog) for words in VOCABULARIES.values())
    machine = next(catalog[pool["machine"]] for catalog in catalogs if pool["machine"] in catalog)
    return pool.get("max_gpus") or pool["max_nodes"] * (pool.get("gpus_per_node") or _gpu(machine).count)


def _can_use(fields: dict[str, Any], kind: CapacityType) -> bool:
    """Return whether a class of these fields may have a pool of this type. DWS ends its nodes, and queued capacity needs a queue."""
    if kind is CapacityType.QUEUED and not (fields["queued"] and fields["fallback"] == Fallback.QUOTA):
        return False
    return kind not in _DWS or fields["checkpoint"] or fields["run_limit_hours"] is not None
