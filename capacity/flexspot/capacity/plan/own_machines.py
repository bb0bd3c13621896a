"""Machines that a stack file describes, beside those of the catalog: their facts, held against what the catalog knows, and their prices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import TPU, of_gce_machine
from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.data_files import Source
from flexspot.capacity.catalog.machines import Vendor, machines_of, unserved_family
from flexspot.capacity.catalog.platform import VOCABULARIES
from flexspot.capacity.catalog.price_book import Price, PriceFile
from flexspot.capacity.settings.platform import EksSettings, GkeSettings
from flexspot.capacity.values.errors import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.catalog.machines import Machine
    from flexspot.capacity.plan.model import Plan, PoolPlan
    from flexspot.capacity.settings.machines import DescribedMachine
    from flexspot.capacity.settings.platform import PlatformSettings


_COMPARED = {
    Vendor.AWS: ("vcpu", "memory_mib", "architecture", "local_ssd_gb", "efa_interfaces", "efa_first_card"),
    Vendor.GCP: ("vcpu", "memory_mib", "architecture", "bundled_local_ssd_disks", "boot_disk", "compact_placement", "flex_start"),
}
"""Facts of a machine that a description says, too."""

_SETTINGS = {"local_ssd_gb": "local_nvme_gb"}
"""Those that settings call otherwise."""

_SERVICES = {Vendor.AWS: "EC2", Vendor.GCP: "Compute Engine"}


def _descriptions(settings: PlatformSettings) -> tuple[DescribedMachine, ...]:
    return settings.machines if isinstance(settings, EksSettings | GkeSettings) else ()


def described_machines(settings: PlatformSettings) -> dict[str, Machine]:
    """The machines that settings describe, by name; none where they describe none."""
    if not isinstance(settings, EksSettings | GkeSettings):
        return {}
    return {each.name: each.machine(settings.region) for each in settings.machines}


def with_described(
    settings: PlatformSettings, cloud: Vendor, known: dict[str, Machine]
) -> tuple[dict[str, Machine], list[SettingsProblem]]:
    """The catalog's machines with those of the settings, and what is wrong with these.

    A description of a machine that the catalog knows may say more of its zones and its price, which change, and nothing else of the rest,
    which does not: so a stack file stays right when the catalog learns of its machine.
    """
    described = described_machines(settings)
    written = _descriptions(settings)
    problems = [
        problem
        for number, each in enumerate(written)
        for problem in _problems(number, each, beside=written, cloud=cloud, described=described, known=known)
    ]
    return known | {name: _told_further(known.get(name), each) for name, each in described.items()}, problems


def _told_further(catalogued: Machine | None, own: Machine) -> Machine:
    """The description; of a machine that the catalog knows, that with the zones of the description."""
    if catalogued is None:
        return own
    return catalogued.model_copy(update={"zones": catalogued.zones | own.zones, "zone_ids": catalogued.zone_ids | own.zone_ids})


def machines_of_pool(plan: Plan, pool: PoolPlan) -> tuple[Machine, ...]:
    """The machines of a pool, the one asked for first."""
    catalog = machines_of(VOCABULARIES[plan.cloud].catalog)
    return tuple(plan.own_machines.get(name) or catalog[name] for name in pool.machines)


def described_prices(settings: PlatformSettings) -> PriceFile | None:
    """The prices that settings give for the machines that they describe; None where they give none."""
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


def own_price_rows(settings: PlatformSettings, file: PriceFile | None) -> PriceFile | None:
    """The rows of a price file of one's own, with those of the settings' machines that it does not have; None for neither."""
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
    beside: tuple[DescribedMachine, ...],
    cloud: Vendor,
    described: dict[str, Machine],
    known: dict[str, Machine],
) -> Iterator[SettingsProblem]:
    path, name = f"machines.{number}", written.name
    if name in {each.name for each in beside[:number]}:
        yield SettingsProblem(f"{path}.name", repr(name), "stands twice", "names are unique", "duplicate-name")
        return
    if unserved := unserved_family(cloud, name):
        yield SettingsProblem(f"{path}.name", repr(name), unserved.problem, unserved.instead, "machine-not-served")
        return
    if cloud is Vendor.GCP and of_gce_machine(name) is TPU:
        problem = "has TPU chips, and a description is of whole GPUs of NVIDIA's"
        remedy = "leave the description out, and use a TPU machine of the catalog: ct5lp-hightpu, ct5p-hightpu-4t, ct6e-standard"
        yield SettingsProblem(f"{path}.name", repr(name), problem, remedy, "machine-not-served")
        return
    if (catalogued := known.get(name)) is None:
        return
    own = described[name]
    if own.gpu is not None and catalogued.gpu is not None and written.gpu is not None and written.gpu.model is None:
        # A name in reports that was left to us is not wrong.
        own = own.model_copy(update={"gpu": own.gpu.model_copy(update={"model": catalogued.gpu.model})})
    differing = list(_differences(cloud, own, catalogued))
    remedy = f"a machine is as {_SERVICES[cloud]} describes it: correct it, or leave the description out"
    for field, value, right in differing:
        problem = f"{name} has {right} in the catalog ({catalogued.source})"
        yield SettingsProblem(f"{path}.{field}", value, problem, remedy, "machine-contradicts-catalog")
    if not differing and not written.zones and written.price is None:
        problem = "says what the catalog knows already"
        yield SettingsProblem(path, repr(name), problem, "leave it out", "machine-in-catalog", refused=False)


def _differences(cloud: Vendor, own: Machine, catalogued: Machine) -> Iterator[tuple[str, str, str]]:
    """The setting, what it says, and what the catalog says."""
    for field in _COMPARED[cloud]:
        said, right = getattr(own, field), getattr(catalogued, field)
        if said != right:
            yield _SETTINGS.get(field, field), str(said), str(right)
    if own.max_pods and catalogued.max_pods and own.max_pods != catalogued.max_pods:
        yield "max_pods", str(own.max_pods), str(catalogued.max_pods)
    if own.gpu != catalogued.gpu:
        yield "gpu", _gpus(own), _gpus(catalogued)


def _gpus(machine: Machine) -> str:
    gpu = machine.gpu
    return f"{gpu.count} x {gpu.name} (model {gpu.model}) with {gpu.memory_mib} MiB each" if gpu else "no GPU"
