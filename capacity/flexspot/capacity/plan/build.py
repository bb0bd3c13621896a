"""Builds the plan of a stack file: look names up, check that settings agree, derive the rest. Reports every problem with its line."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.data_files import DataFileError
from flexspot.capacity.catalog.node_images import ImageBook, shipped_images
from flexspot.capacity.plan.checks import disagreements
from flexspot.capacity.plan.cpu_work import cpu_work_plan
from flexspot.capacity.plan.kueue_configuration import ONE_BOOT, PodsReady
from flexspot.capacity.plan.model import AdmissionPlan, Plan, PlanWarning
from flexspot.capacity.plan.pools import accelerator_ceilings, cluster_limits, owner_labels, pool_plans
from flexspot.capacity.plan.queues import (
    cohort_plans,
    compute_class_plans,
    flavor_plans,
    priority_plans,
    queue_plans,
    route_plans,
    topology_plans,
)
from flexspot.capacity.plan.resolve import described_book, described_machines, resolve
from flexspot.capacity.plan.spending import spending_plan
from flexspot.capacity.plan.teams import team_plans
from flexspot.capacity.plan.versions import version_plan
from flexspot.capacity.settings.platform import EksSettings, GkeSettings
from flexspot.capacity.settings.stack_file import lines_of, read_stack_file
from flexspot.capacity.settings.teams import AdmissionMode
from flexspot.capacity.values.errors import SettingsError, SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from flexspot.capacity.catalog.price_book import PriceBook
    from flexspot.capacity.plan.resolve import ResolvedSettings
    from flexspot.capacity.settings.platform import PlatformSettings


def build_plan(
    settings: PlatformSettings, source: str = "settings", prices: PriceBook | None = None, images: ImageBook | None = None
) -> Plan:
    """Return the plan that follows from settings.

    `prices` is the price book that budgets are checked against, and `images` the releases of node images. Both default to the shipped ones.
    Raises SettingsError naming `source` with everything that cannot work. Settings that work but are probably not intended become warnings
    of the plan.
    """
    resolved, problems = resolve(settings, prices, images or shipped_images())
    problems += disagreements(resolved)
    if refused := [each for each in problems if each.refused]:
        raise SettingsError(source, refused)
    return _assemble(resolved, problems)


def _assemble(resolved: ResolvedSettings, warnings: list[SettingsProblem]) -> Plan:
    settings = resolved.settings
    admission, times = admission_plan(settings), pods_ready(resolved)
    pools = pool_plans(resolved)
    accelerators, limits = accelerator_ceilings(pools), cluster_limits(resolved)
    flavors = flavor_plans(resolved, pools)
    routes = route_plans(resolved, pools, flavors)
    queues, cohorts = queue_plans(resolved, flavors), cohort_plans(resolved, flavors)
    topologies, compute_classes, priorities = (
        topology_plans(resolved, flavors),
        compute_class_plans(resolved, routes),
        priority_plans(resolved),
    )
    cpu_work = cpu_work_plan(resolved, flavors, queues)
    return Plan(
        cloud=settings.cloud,
        environment=settings.environment,
        region=resolved.region,
        labels=owner_labels(settings),
        pools=pools,
        accelerators=accelerators,
        limits=limits,
        compute_classes=compute_classes,
        topologies=topologies,
        flavors=flavors,
        pods_ready=times,
        priorities=priorities,
        cohorts=cohorts,
        queues=queues,
        cpu_work=cpu_work,
        teams=team_plans(resolved, flavors, cohorts, queues, cpu_work),
        routes=routes,
        admission=admission,
        versions=version_plan(settings, resolved.images),
        spending=spending_plan(resolved, limits),
        own_machines={name: resolved.machines[name] for name in described_machines(settings)},
        warnings=tuple(PlanWarning(each.rule, each.path, f"{each.problem}; {each.allowed}") for each in warnings),
    )


MUTATING_POLICIES_SINCE = (1, 36)
"""The first version of Kubernetes that has MutatingAdmissionPolicy in admissionregistration.k8s.io/v1."""


def admission_plan(settings: PlatformSettings) -> AdmissionPlan:
    """Return the admission policies of the settings. Owner labels default to on where the cluster's version certainly supports them."""
    wanted = settings.admission
    labels = _can_fill_in(settings) if wanted.default_owner_labels is None else wanted.default_owner_labels
    return AdmissionPlan(wanted.mode, labels and wanted.mode is not AdmissionMode.NONE)


def _can_fill_in(settings: PlatformSettings) -> bool:
    """Return whether the cluster certainly supports owner labels.

    The version of an existing cluster is not known; the local lab supports them.
    """
    match settings:
        case GkeSettings():
            version = None if settings.cluster.existing else settings.cluster.min_version
        case EksSettings():
            version = None if settings.cluster.existing else settings.cluster.version
        case _:
            return True
    return version is not None and tuple(map(int, version.split(".")[:2])) >= MUTATING_POLICIES_SINCE


FLEX_START_TIMES = PodsReady(timeout_seconds=6 * 3600, recovery_seconds=ONE_BOOT.recovery_seconds, requeues=3)
"""Times for flex-start, where a pod usually waits for hours in the DWS queue. Removing the pod gives up its place.

With fewer requeues, work that can never start still ends within about a day. An image that cannot be pulled, for example, occupies its node
all the while.
"""


def pods_ready(resolved: ResolvedSettings) -> PodsReady:
    """Return the times of the cluster's Kueue. It has one setting for all queues, so the slowest capacity of a queue decides.

    Queued capacity is not slow here: Kueue admits such a job when its nodes exist, and the time starts then.
    """
    types = {pool.settings.capacity_type for pool in resolved.queued_pools.values()}
    return FLEX_START_TIMES if CapacityType.FLEX_START in types else ONE_BOOT


@dataclass(frozen=True)
class StackPlan:
    """A stack file's settings, the plan that follows from them, and the prices that its budgets were checked against."""

    settings: PlatformSettings
    plan: Plan
    prices: PriceBook


def plan_of_stack_file(path: Path) -> StackPlan:
    """Return the plan of a stack file.

    Raises SettingsError with every problem and its line, or FileNotFoundError.
    """
    settings = read_stack_file(path)
    try:
        prices = price_book_of(settings, path.parent, path.name)
        images = image_book_of(settings, path.parent, path.name)
        return StackPlan(settings, build_plan(settings, path.name, prices, images), prices)
    except SettingsError as error:
        raise error.with_lines(lines_of(path.read_text(encoding="utf-8"))) from error


def price_book_of(settings: PlatformSettings, folder: Path, source: str) -> PriceBook:
    """Return the shipped prices, overridden by those of the settings' `machines`, and then by those of `prices_file`.

    `prices_file` is a path relative to `folder`. Raises SettingsError naming `source` if that file is missing or breaks its schema.
    """
    book = described_book(settings)
    if settings.prices_file is None:
        return book
    with _own_file(source, "prices_file", settings.prices_file, "its format is that of flexspot/capacity/catalog/prices/*.yaml"):
        return book.overridden_by(folder / settings.prices_file)


def image_book_of(settings: PlatformSettings, folder: Path, source: str) -> ImageBook:
    """Return the shipped releases of node images, extended by the settings' `images_file`, a path relative to `folder`.

    Raises SettingsError naming `source` if that file is missing or breaks its schema.
    """
    book = shipped_images()
    if not isinstance(settings, EksSettings) or settings.cluster.images_file is None:
        return book
    with _own_file(source, "cluster.images_file", settings.cluster.images_file, "`flexspot images refresh` writes it"):
        return book.with_file(folder / settings.cluster.images_file)


@contextmanager
def _own_file(source: str, path: str, written: str, form: str) -> Generator[None]:
    """Raise problems with a file that the settings name as problems of the setting at `path`."""
    try:
        yield
    except FileNotFoundError:
        problem = SettingsProblem(path, repr(written), "does not exist", "write the path relative to the stack file's folder")
    except (DataFileError, OSError, UnicodeDecodeError) as error:
        problem = SettingsProblem(path, repr(written), str(error), f"fix the file; {form}")
    else:
        return
    raise SettingsError(source, [problem])
