"""Looks up the machines, GPUs and classes that settings name. Reports unknown names with the known ones."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, cast

from pydantic import ValidationError

from flexspot.capacity.catalog.accelerators import TPU, of_gce_machine
from flexspot.capacity.catalog.capacity_type import CapacityType, facts_of, merged_order
from flexspot.capacity.catalog.data_files import Source
from flexspot.capacity.catalog.machines import Vendor, is_zone_id, machines_of, machines_with, unserved_families, zone_names_differ
from flexspot.capacity.catalog.platform import AUTO_MODE, VOCABULARIES, Platform, Vocabulary
from flexspot.capacity.catalog.price_book import Price, PriceFile, prices_of
from flexspot.capacity.catalog.workload_classes import Fallback, WorkloadClass, shipped_classes
from flexspot.capacity.plan.model import Amount
from flexspot.capacity.settings.cluster import EksMode, GkeMode
from flexspot.capacity.settings.platform import EksSettings, GkeSettings, ZoneMachines
from flexspot.capacity.settings.stack_file import problem_and_remedy, shown
from flexspot.capacity.values.errors import SettingsProblem, nearest
from flexspot.capacity.values.names import EC2_MACHINE, GKE_MACHINE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flexspot.capacity.catalog.capacity_type import CapacityTypeFacts
    from flexspot.capacity.catalog.machines import Gpu, Machine, UnservedFamilies
    from flexspot.capacity.catalog.node_images import ImageBook
    from flexspot.capacity.catalog.price_book import PriceBook
    from flexspot.capacity.plan.model import Plan, PoolPlan
    from flexspot.capacity.settings.machines import DescribedMachine
    from flexspot.capacity.settings.platform import PlatformSettings
    from flexspot.capacity.settings.pools import PoolSettings


_COMPARED = {
    Vendor.AWS: ("vcpu", "memory_mib", "architecture", "local_ssd_gb", "efa_interfaces", "efa_first_card"),
    Vendor.GCP: ("vcpu", "memory_mib", "architecture", "bundled_local_ssd_disks", "boot_disk", "compact_placement", "flex_start"),
}
"""Facts of a machine that a description also contains."""

_SETTINGS = {"local_ssd_gb": "local_nvme_gb"}
"""Names of facts that differ in the settings."""

_SERVICES = {Vendor.AWS: "EC2", Vendor.GCP: "Compute Engine"}


def _descriptions(settings: PlatformSettings) -> tuple[DescribedMachine, ...]:
    return settings.machines if isinstance(settings, EksSettings | GkeSettings) else ()


def described_machines(settings: PlatformSettings) -> dict[str, Machine]:
    """Return the machines that settings describe, by name."""
    if not isinstance(settings, EksSettings | GkeSettings):
        return {}
    return {each.name: each.machine(settings.region) for each in settings.machines}


def with_described(
    settings: PlatformSettings, cloud: Vendor, known: dict[str, Machine], unserved: dict[str, UnservedFamilies]
) -> tuple[dict[str, Machine], list[SettingsProblem]]:
    """Return the catalog's machines with those that settings describe, and the problems of the descriptions.

    The description of a catalogued machine may add to its zones and prices, which change. It must not contradict the other facts, which do
    not change. So a stack file stays valid when the catalog adds its machine.
    """
    described = described_machines(settings)
    written = _descriptions(settings)
    problems = [
        problem
        for number, each in enumerate(written)
        for problem in _problems(number, each, descriptions=written, cloud=cloud, described=described, known=known, unserved=unserved)
    ]
    return known | {name: _merged(known.get(name), each) for name, each in described.items()}, problems


def _merged(catalogued: Machine | None, own: Machine) -> Machine:
    """Return the description, or the catalog's machine with the zones of both."""
    if catalogued is None:
        return own
    return catalogued.model_copy(update={"zones": catalogued.zones | own.zones, "zone_ids": catalogued.zone_ids | own.zone_ids})


def machines_of_pool(plan: Plan, pool: PoolPlan) -> tuple[Machine, ...]:
    """Return the machines of a pool, the preferred one first."""
    catalog = machines_of(VOCABULARIES[plan.cloud].catalog)
    return tuple(plan.own_machines.get(name) or catalog[name] for name in pool.machines)


def described_prices(settings: PlatformSettings) -> PriceFile | None:
    """Return the prices that settings give for the machines that they describe, or None if they give none."""
    if not isinstance(settings, EksSettings | GkeSettings):
        return None
    sources: dict[str, Source] = {}
    prices: list[Price] = []
    for each in settings.machines:
        if each.price is None:
            continue
        source = f"machines: {each.name}"
        sources[source] = Source(citation=f"price of {each.name} in the stack file's machines", as_of=each.price.as_of, verified=False)
        for kind, usd in (
            (CapacityType.ON_DEMAND, each.price.on_demand_usd_per_hour),
            (CapacityType.SPOT, each.price.spot_usd_per_hour),
        ):
            if usd is not None:
                prices.append(Price(machine=each.name, region=settings.region, capacity_type=kind, usd_per_hour=usd, source=source))
    return PriceFile(cloud=VOCABULARIES[settings.cloud].catalog, sources=sources, prices=prices) if prices else None


def described_book(settings: PlatformSettings) -> PriceBook:
    """Return the shipped prices, overridden by the prices of the machines that settings describe."""
    book, described = prices_of(VOCABULARIES[settings.cloud].catalog), described_prices(settings)
    return book if described is None else book.with_rows_of(described, "stack file")


def own_price_rows(settings: PlatformSettings, file: PriceFile | None) -> PriceFile | None:
    """Return the rows of a user's price file and those of the settings' machines that it lacks. None if there are neither."""
    described = described_prices(settings)
    if file is None or described is None:
        return file or described
    known = {(each.machine, each.region, each.capacity_type) for each in file.prices if each.pool is None}
    others = [each for each in described.prices if (each.machine, each.region, each.capacity_type) not in known]
    return file.model_copy(update={"sources": described.sources | file.sources, "prices": [*file.prices, *others]})


def _problems(  # noqa: PLR0913 -- one description, and all that it may contradict
    number: int,
    written: DescribedMachine,
    *,
    descriptions: tuple[DescribedMachine, ...],
    cloud: Vendor,
    described: dict[str, Machine],
    known: dict[str, Machine],
    unserved: dict[str, UnservedFamilies],
) -> Iterator[SettingsProblem]:
    path, name = f"machines.{number}", written.name
    if name in {each.name for each in descriptions[:number]}:
        yield SettingsProblem(f"{path}.name", repr(name), "is described twice", "leave one of them out", "duplicate-name")
        return
    if family := unserved_family(unserved, name):
        yield SettingsProblem(f"{path}.name", repr(name), family.problem, family.instead, "machine-not-served")
        return
    if cloud is Vendor.GCP and of_gce_machine(name) is TPU:
        problem = "has TPU chips, but only machines with NVIDIA GPUs can be described"
        remedy = "leave the description out, and use a TPU machine of the catalog: ct5lp-hightpu, ct5p-hightpu-4t, ct6e-standard"
        yield SettingsProblem(f"{path}.name", repr(name), problem, remedy, "machine-not-served")
        return
    if (catalogued := known.get(name)) is None:
        return
    own = described[name]
    if own.gpu is not None and catalogued.gpu is not None and written.gpu is not None and written.gpu.model is None:
        # A name that the description leaves out is not a contradiction.
        own = own.model_copy(update={"gpu": own.gpu.model_copy(update={"model": catalogued.gpu.model})})
    differing = list(_differences(cloud, own, catalogued))
    remedy = f"correct it to the value of {_SERVICES[cloud]}, or leave the description out"
    for field, value, right in differing:
        problem = f"the catalog has {right} for {name} ({catalogued.source})"
        yield SettingsProblem(f"{path}.{field}", value, problem, remedy, "machine-contradicts-catalog")
    if not differing and not written.zones and written.price is None:
        problem = "repeats what the catalog has"
        yield SettingsProblem(path, repr(name), problem, "leave it out", "machine-in-catalog", refused=False)


def _differences(cloud: Vendor, own: Machine, catalogued: Machine) -> Iterator[tuple[str, str, str]]:
    """Yield each setting that differs, its value, and the value in the catalog."""
    for field in _COMPARED[cloud]:
        described, right = getattr(own, field), getattr(catalogued, field)
        if described != right:
            yield _SETTINGS.get(field, field), str(described), str(right)
    if own.max_pods and catalogued.max_pods and own.max_pods != catalogued.max_pods:
        yield "max_pods", str(own.max_pods), str(catalogued.max_pods)
    if own.gpu != catalogued.gpu:
        yield "gpu", _gpus(own), _gpus(catalogued)


def _gpus(machine: Machine) -> str:
    gpu = machine.gpu
    return f"{gpu.count} x {gpu.name} (model {gpu.model}) with {gpu.memory_mib} MiB each" if gpu else "no GPU"


LOCAL_REGION = "us-east-1"
"""The region whose zones and prices the local lab uses."""


@dataclass(frozen=True)
class ResolvedPool:
    """A pool whose machines are in the catalog."""

    path: str
    """Path of the pool in the settings."""
    settings: PoolSettings
    machines: tuple[Machine, ...]
    """The machine that the settings name, followed by its alternatives."""
    gpu: Gpu
    gpus_per_node: int
    device_labels: dict[str, str]
    classes: tuple[WorkloadClass, ...]
    ceiling: Amount

    @property
    def name(self) -> str:
        """The pool's name."""
        return self.settings.name

    @property
    def max_nodes(self) -> int:
        """Ceiling in nodes, derived from the ceiling in GPUs."""
        return self.ceiling.gpus // self.gpus_per_node

    @property
    def nodes(self) -> list[Amount]:
        """Resources of one node of each machine."""
        return [Amount(self.gpus_per_node, machine.vcpu, machine.memory_mib) for machine in self.machines]

    @property
    def queued(self) -> bool:
        """True if a queue gives away its GPUs."""
        return any(each.queued for each in self.classes)

    @property
    def unqueued(self) -> bool:
        """True if unqueued pods may use its GPUs."""
        return any(not each.queued for each in self.classes)


@dataclass(frozen=True)
class ResolvedSettings:
    """Settings with everything that they name."""

    settings: PlatformSettings
    words: Vocabulary
    machines: dict[str, Machine]
    facts: dict[CapacityType, CapacityTypeFacts]
    prices: PriceBook
    images: ImageBook
    classes: dict[str, WorkloadClass]
    """Classes that a pool serves."""
    known_classes: dict[str, WorkloadClass]
    pools: dict[str, ResolvedPool]
    """Pools that could be resolved, by name."""

    @property
    def autopilot(self) -> bool:
        """True if GKE manages all nodes. Pools then describe what pods may request, and are not node pools."""
        return isinstance(self.settings, GkeSettings) and self.settings.cluster.mode is GkeMode.AUTOPILOT

    @property
    def auto_mode(self) -> bool:
        """True if AWS runs Karpenter and the software on nodes. Pools are still NodePools."""
        return self.words is AUTO_MODE

    @cached_property
    def region(self) -> str:
        """The platform's region."""
        return str(getattr(self.settings, "region", LOCAL_REGION))

    @cached_property
    def zones(self) -> tuple[str, ...]:
        """The platform's zones. Empty for the local lab."""
        return tuple(getattr(self.settings, "zones", ()))

    @cached_property
    def zones_are_known(self) -> bool:
        """True if the catalog's zones are certainly those of the settings, so that they can be checked."""
        if getattr(self.settings, "zone_machines", None) is ZoneMachines.UNCHECKED:
            return False
        names = [zone for zone in self.zones if not is_zone_id(zone)]
        return not (names and self.words.catalog is Vendor.AWS and zone_names_differ(self.region))

    @cached_property
    def doubtful_pools(self) -> set[str]:
        """Pools with a problem that is already reported. Its consequences are not reported again."""
        unknown = {pool.name for pool in self.settings.pools if set(pool.serves) - set(self.known_classes)}
        return unknown | {pool.name for pool in self.settings.pools if pool.name not in self.pools}

    @cached_property
    def queued_pools(self) -> dict[str, ResolvedPool]:
        """The pools whose GPUs a queue gives away, by name."""
        return {name: pool for name, pool in self.pools.items() if pool.queued}

    @cached_property
    def unqueued_gpus(self) -> dict[str, int]:
        """GPUs of each pool that the unqueued classes of all teams may use."""
        promised: dict[str, int] = dict.fromkeys(self.pools, 0)
        for team in self.settings.teams:
            for pool, gpus in team.unqueued.items():
                if pool in promised:
                    promised[pool] += gpus
        return promised

    @cached_property
    def stock_out_ranks(self) -> dict[CapacityType, int]:
        """Rank of each capacity type in the order of the classes that move on at a stock-out. 0 is tried first."""
        return _ranks(each.capacity for each in self.classes.values() if each.fallback is Fallback.STOCK_OUT)

    @cached_property
    def queue_ranks(self) -> dict[CapacityType, int]:
        """Rank of each capacity type in the order of the queued classes."""
        return _ranks(each.capacity for each in self.classes.values() if each.queued)

    def queue_gpus(self, pool: ResolvedPool) -> int:
        """Return the GPUs of `pool` that the queues may give away: its ceiling, less what unqueued classes may use."""
        return max(0, pool.ceiling.gpus - self.unqueued_gpus[pool.name]) if pool.queued else 0


def _ranks(orders: Iterable[tuple[CapacityType, ...]]) -> dict[CapacityType, int]:
    return {each: rank for rank, each in enumerate(merged_order(orders))}


def node_amount(machines: Sequence[Machine], gpus_per_node: int) -> Amount:
    """Return the most vCPU and memory of one node of these machines, so that quota derived from it never runs out before the GPUs do."""
    return Amount(gpus_per_node, max(each.vcpu for each in machines), max(each.memory_mib for each in machines))


def resolve(settings: PlatformSettings, prices: PriceBook | None, images: ImageBook) -> tuple[ResolvedSettings, list[SettingsProblem]]:
    """Return the settings with what they name, as far as it is known, and the problems. `prices` default to the shipped ones."""
    auto_mode = isinstance(settings, EksSettings) and settings.cluster.mode is EksMode.AUTO
    words = AUTO_MODE if auto_mode else VOCABULARIES[settings.cloud]
    shipped, unserved = machines_of(words.catalog), unserved_families(words.catalog)
    # Fake nodes cannot be reserved.
    none = {CapacityType.RESERVED} if settings.cloud is Platform.LOCAL else set[CapacityType]()
    facts = {name: each for name, each in facts_of(words.facts).items() if name not in none}
    prices = prices or described_book(settings)
    machines, problems = with_described(settings, words.catalog, shipped, unserved)
    known_classes = _classes(settings, problems)
    pools: dict[str, ResolvedPool] = {}
    for number, each in enumerate(settings.pools):
        pool = _pool(f"pools.{number}", each, words=words, machines=machines, unserved=unserved, classes=known_classes, problems=problems)
        problems += _capacity_type(f"pools.{number}", each, facts)
        if pool is not None and each.capacity_type in facts:
            pools[each.name] = pool
    served = {name for pool in settings.pools for name in pool.serves}
    classes = {name: known_classes[name] for name in sorted(known_classes) if name in served}
    return ResolvedSettings(settings, words, machines, facts, prices, images, classes, known_classes, pools), problems


def _classes(settings: PlatformSettings, problems: list[SettingsProblem]) -> dict[str, WorkloadClass]:
    """Return every class by name: the shipped ones with the settings' changes, and those that the settings add."""
    classes = dict(shipped_classes())
    for name, changes in settings.classes.items():
        shipped = classes.get(name)
        fields = shipped.model_dump() if shipped else {}
        fields |= {field: getattr(changes, field) for field in changes.model_fields_set}
        try:
            classes[name] = WorkloadClass.model_validate(fields)
        except ValidationError as error:
            problems += _class_problems(name, error)
    return classes


def _class_problems(name: str, error: ValidationError) -> Iterator[SettingsProblem]:
    errors = error.errors()
    if lacking := sorted(str(each["loc"][0]) for each in errors if each["type"] == "missing"):
        shipped = nearest(name, sorted(shipped_classes())).replace("allowed:", "shipped classes:")
        allowed = f"a new class must set all of them; {shipped}"
        yield SettingsProblem(f"classes.{name}", "", f"lacks {', '.join(lacking)}", allowed, "incomplete-class")
    for each in errors:
        if each["type"] != "missing":
            written = each["input"]
            plain = [str(item) for item in cast("tuple[object, ...]", written)] if isinstance(written, tuple) else written
            path = f"classes.{name}.{'.'.join(map(str, each['loc']))}"
            yield SettingsProblem(path, shown(plain), *problem_and_remedy(each))


def _capacity_type(path: str, pool: PoolSettings, facts: dict[CapacityType, CapacityTypeFacts]) -> Iterator[SettingsProblem]:
    if pool.capacity_type not in facts:
        allowed = f"allowed: {', '.join(facts)}"
        problem = "is not a capacity type of this cloud"
        yield SettingsProblem(f"{path}.capacity_type", repr(pool.capacity_type.value), problem, allowed, "capacity-type-of-another-cloud")


def _pool(  # noqa: PLR0913 -- a pool, and tables of the names that it may use
    path: str,
    pool: PoolSettings,
    *,
    words: Vocabulary,
    machines: dict[str, Machine],
    unserved: dict[str, UnservedFamilies],
    classes: dict[str, WorkloadClass],
    problems: list[SettingsProblem],
) -> ResolvedPool | None:
    alternatives: tuple[str, ...] = getattr(pool, "alternatives", ())
    places = {f"{path}.machine": pool.machine, **{f"{path}.alternatives.{n}": name for n, name in enumerate(alternatives)}}
    before = len(problems)
    for place, name in places.items():
        problems += _machine(place, name, machines, unserved, words.catalog)
    if len(problems) > before:
        return None
    found = tuple(machines[name] for name in places.values())
    gpu = found[0].gpu
    assert gpu is not None, "_machine refuses machines without GPUs"  # noqa: S101 -- tells the type checker what was checked
    gpus_per_node = pool.gpus_per_node or gpu.count
    problems += _same_gpus(path, found, gpu, gpus_per_node)
    problems += _count(path, found[0], gpu, gpus_per_node, machines)
    if len(problems) > before:
        return None
    max_nodes = pool.max_nodes or (pool.max_gpus or 0) // gpus_per_node
    node = node_amount(found, gpus_per_node)
    vcpu, memory_mib = max_nodes * node.vcpu, max_nodes * node.memory_mib
    ceiling = Amount(
        gpus=max_nodes * node.gpus,
        vcpu=vcpu if pool.max_vcpu is None else min(vcpu, pool.max_vcpu),
        memory_mib=memory_mib if pool.max_memory_gib is None else min(memory_mib, pool.max_memory_gib * 1024),
    )
    served = tuple(classes[name] for name in sorted(set(pool.serves)) if name in classes)
    return ResolvedPool(path, pool, found, gpu, gpus_per_node, words.device_labels(gpu), served, ceiling)


_DESCRIBED = {Vendor.AWS: (EC2_MACHINE, "EC2"), Vendor.GCP: (GKE_MACHINE, "Compute Engine")}
"""Pattern of each cloud's machine names, and the service that describes them."""


def unserved_family(unserved: dict[str, UnservedFamilies], machine: str) -> UnservedFamilies | None:
    """Return why no pool can have a machine, by its family, or None if no reason is known."""
    # Compute Engine separates a family's name by a hyphen. In some families only single machines are not served.
    return unserved.get(machine.partition(".")[0]) or unserved.get(machine.partition("-")[0])


def _machine(
    path: str, name: str, machines: dict[str, Machine], unserved: dict[str, UnservedFamilies], cloud: Vendor
) -> Iterator[SettingsProblem]:
    machine = machines.get(name)
    with_gpus = [each.name for each in machines.values() if each.gpu]
    family = unserved_family(unserved, name) if machine is None else None
    if family is not None:
        yield SettingsProblem(path, repr(name), family.problem, family.instead, "machine-not-served")
    elif machine is None:
        allowed = nearest(name, with_gpus)
        if re.fullmatch(_DESCRIBED[cloud][0], name):
            allowed += f"; if {_DESCRIBED[cloud][1]} has it, describe it in `machines`"
        yield SettingsProblem(path, repr(name), "is not a machine of the catalog", allowed, "unknown-machine")
    elif machine.gpu is None:
        yield SettingsProblem(path, repr(name), "has no GPU, and pools are for GPUs", nearest(name, with_gpus), "machine-without-gpu")


def _same_gpus(path: str, machines: tuple[Machine, ...], gpu: Gpu, gpus_per_node: int) -> Iterator[SettingsProblem]:
    # A flavor and a price are for one GPU model. With several in a pool, neither would describe what a job gets.
    for number, machine in enumerate(machines[1:]):
        other = machine.gpu
        if other is None or other.name != gpu.name or other.memory_mib != gpu.memory_mib or gpus_per_node not in other.counts:
            has = f"{other.counts[0]} x {other.model}" if other else "no GPU"
            problem = f"has {has}, but {machines[0].name} has {gpus_per_node} x {gpu.model}"
            remedy = "all machines of a pool must have the same GPUs; put it in a separate pool"
            yield SettingsProblem(f"{path}.alternatives.{number}", repr(machine.name), problem, remedy, "mixed-gpus-in-pool")


def _count(path: str, machine: Machine, gpu: Gpu, asked: int, machines: dict[str, Machine]) -> Iterator[SettingsProblem]:
    if asked in gpu.counts:
        return
    fitting = machines_with(machines, gpu.name, asked)
    has = " or ".join(map(str, gpu.counts))
    allowed = f"use {fitting[0]}, which has {asked}" if len(fitting) == 1 else f"machines with {asked}: {', '.join(fitting) or '(none)'}"
    yield SettingsProblem(
        f"{path}.gpus_per_node", str(asked), f"{machine.name} has {has} {gpu.name}", allowed, "machine-without-that-many-gpus"
    )
