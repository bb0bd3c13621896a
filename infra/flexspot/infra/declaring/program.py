"""The Pulumi program: a project's own, or that of a stack's settings. Also writes the plan file of a preview."""

from __future__ import annotations

import asyncio
import json
import os
import runpy
import sys
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pulumi
from pulumi.runtime.settings import SETTINGS

from flexspot.capacity.catalog.data_files import read_records
from flexspot.capacity.catalog.price_book import PriceFile
from flexspot.capacity.cost.costed_plan import VERSION, costed, shipped_use
from flexspot.capacity.cost.plan_comparison import figures_data, plan_cost_data
from flexspot.capacity.cost.plan_cost import plan_cost
from flexspot.capacity.plan.build import build_plan, image_book_of, price_book_of
from flexspot.capacity.plan.model import plan_data
from flexspot.capacity.plan.resolve import own_price_rows
from flexspot.capacity.settings.platform import EksSettings, GkeSettings, LocalSettings, OnUnknownPrices
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.capacity.values.engine_marks import SIGNATURE, UNKNOWNS
from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.components.monthly_cost import MonthlyCost, SpendingArgs
from flexspot.infra.declaring.local import declare_local
from flexspot.infra.declaring.rules import rules_of
from flexspot.infra.project import FILE, project_here

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from decimal import Decimal

    from pulumi.automation import EngineEvent

    from flexspot.capacity.catalog.price_book import PriceBook
    from flexspot.capacity.cost.figures import Figures
    from flexspot.capacity.cost.plan_cost import PlanCost, TeamCost
    from flexspot.capacity.plan.build import StackPlan
    from flexspot.capacity.plan.model import Plan
    from flexspot.capacity.settings.platform import LocalSettings, PlatformSettings
    from flexspot.infra.declaring.platform_objects import Outputs
    from flexspot.infra.project import Project


def declare_monthly_cost(plan: Plan, prices: PriceBook, within: pulumi.ResourceOptions) -> None:
    """Register the monthly cost, calculated at `prices` with the usage that is expected by default."""
    cost, unknown = plan_cost(costed(plan), prices, shipped_use()), plan.spending.on_unknown_prices
    MonthlyCost(
        "monthly-cost",
        {
            "environment": _spending(cost, cost.environment, cost.total, cost.total.worst_usd, unknown),
            "teams": [_spending(each, each.name, each.figures, each.worst_usd, unknown) for each in cost.teams if each.budget is not None],
        },
        within,
    )


def _spending(part: PlanCost | TeamCost, owner: str, figures: Figures, worst_usd: Decimal, on_unknown: OnUnknownPrices) -> SpendingArgs:
    data = figures_data(figures)
    spending: SpendingArgs = {
        "owner": owner,
        "expected_usd": data["expected_usd"],
        "worst_case_usd": str(worst_usd),
        "idle_floor_usd": data["idle_floor_usd"],
        "unknown_prices": list(part.unknown),
    }
    # Fields with no information are omitted, so that a stack whose prices are all known does not show them.
    if part.unknown and not part.unbounded:
        spending["expected_at_most_usd"] = data["expected_at_most_usd"]
    if part.unbounded:
        spending["unbounded_prices"] = list(part.unbounded)
    if on_unknown is not OnUnknownPrices.WARN:
        spending["on_unknown_prices"] = on_unknown.value
    if part.budget is not None:
        spending["budget_usd"] = str(part.budget)
    return spending


KUBECONFIG_VARIABLE = "FLEXSPOT_LAB_KUBECONFIG"
"""Environment variable with the path of the kubeconfig of a `cloud: local` stack's lab. Default: the lab called default."""


def main() -> None:
    """Declare the resources of the stack that is being deployed. Raises SettingsError for invalid settings."""
    value: Any = pulumi.Config("flexspot").require_object("platform")
    source = f"Pulumi.{pulumi.get_stack()}.yaml"
    for name, output in declare(parse_settings(value, source), source, project_here().stacks).items():
        pulumi.export(name, output)


def declare(settings: PlatformSettings, source: str, folder: Path, parent: pulumi.Resource | None = None) -> Outputs:
    """Declare the platform of `settings` and return its outputs.

    `source` names the settings in errors. Their paths are relative to `folder`. Each resource outside of a component is a child of
    `parent`; default: of the stack. Raises SettingsError for invalid settings before anything is declared.
    """
    within = pulumi.ResourceOptions(parent=parent)
    prices = price_book_of(settings, folder, source)
    images = image_book_of(settings, folder, source)
    rules = rules_of(settings, folder, source)
    plan = build_plan(settings, source, prices, images)
    if isinstance(settings, GkeSettings):
        # A cloud's SDK takes seconds to load, so only its own stacks load it.
        from flexspot.infra.declaring.gke import declare_gke  # noqa: PLC0415

        outputs = declare_gke(plan, settings, rules, within)
    elif isinstance(settings, EksSettings):
        from flexspot.infra.declaring.eks import declare_eks  # noqa: PLC0415

        outputs = declare_eks(plan, settings, rules, images, within)
    else:
        # Fake nodes cost nothing.
        return declare_local(plan, cast("LocalSettings", settings), rules, lab_kubeconfig())
    declare_monthly_cost(plan, prices, within)
    return outputs


def lab_kubeconfig() -> Path:
    """Return the path of the local stack's kubeconfig."""
    return Path(os.environ.get(KUBECONFIG_VARIABLE) or project_here().labs / "default" / "kubeconfig")


_HIDDEN = "[secret]"
"""Replacement of a secret in the engine's events."""


@dataclass
class PlannedResources:
    """The engine's report of a preview: each resource, by URN, and each policy violation."""

    resources: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    verdicts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def hear(self, event: EngineEvent) -> None:
        """Record one event."""
        step = event.resource_pre_event
        if step is not None and step.metadata.new is not None:
            new = step.metadata.new
            self.resources[new.urn] = {
                "urn": new.urn,
                "type": new.type,
                "name": new.urn.rpartition("::")[2],
                "parent": new.parent or None,
                "custom": bool(new.custom),
                "inputs": _plain(new.inputs or {}),
            }
        if event.policy_event is not None:
            violation = event.policy_event
            self.verdicts.append(
                {
                    "policy": violation.policy_name,
                    "level": violation.enforcement_level,
                    "resource": violation.resource_urn or None,
                    "message": violation.message.strip(),
                }
            )


def write_plan_file(path: Path, stack: str, planned: StackPlan, heard: PlannedResources, own_prices: Path | None) -> None:
    """Write the plan file. `own_prices` is the stack's own price file. Raises ExplainedError when the file cannot be written."""
    cost = plan_cost(costed(planned.plan), planned.prices, shipped_use())
    read = None if own_prices is None else read_records(own_prices, PriceFile)
    own = own_price_rows(planned.settings, read)
    content = {
        "version": VERSION,
        "stack": stack,
        "cloud": planned.plan.cloud.value,
        "plan": plan_data(planned.plan),
        "resources": list(heard.resources.values()),
        "policies": heard.verdicts,
        "cost": {**plan_cost_data(cost), "own_prices": None if own is None else own.model_dump(mode="json")},
    }
    try:
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        remedy = "name a file in an existing, writable folder."
        raise ExplainedError(f"{path} cannot be written: {error.strerror}.", remedy, exit_code=ExitCode.BAD_USAGE) from error


def _plain(value: Any) -> Any:
    """Return a value with the engine's marks of unknown and secret values translated."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {"$secret": True} if SIGNATURE in fields else {key: _plain(each) for key, each in fields.items()}
    if isinstance(value, list):
        return [_plain(each) for each in cast("list[Any]", value)]
    if value == _HIDDEN:
        return {"$secret": True}
    return {"$unknown": True} if isinstance(value, str) and value in UNKNOWNS else value


_ENTRY = "__main__.py"
_OWN = Path(__file__).resolve().parents[4]


def program_of(project: Project) -> Callable[[], None]:
    """Return the program of a project: its `__main__.py`, or the platform of the stack file if it has none.

    Raises ExplainedError for a project in another language: its program runs under `pulumi` itself.
    """
    runtime = project.content.get("runtime")
    language = runtime.get("name") if isinstance(runtime, dict) else runtime
    if language != "python":
        what = f"the program of {project.folder / FILE} is in {language}" if language else f"{project.folder / FILE} names no runtime"
        first = "" if language else "write `runtime: python` there, or "
        raise ExplainedError(
            f"{what}, but this command runs only programs in Python.",
            f"{first}run `pulumi preview` and `pulumi up`, with --policy-pack $(flexspot rules pack).",
            exit_code=ExitCode.BAD_USAGE,
        )
    named = project.folder / str(project.content.get("main") or "")
    entry = named if named.is_file() else named / _ENTRY
    if not entry.is_file():
        return main

    def run() -> None:
        with _as_a_language_host_does(entry.parent):
            runpy.run_path(str(entry), run_name="__main__")

    return run


def settled(program: Callable[[], None]) -> Callable[[], Coroutine[Any, Any, None]]:
    """Return `program`, followed by one wait for all outputs that it has left pending.

    The SDK itself restarts its wait for all of them whenever one becomes known. That takes quadratic time: a tenth of the CPU of a preview
    of prod-eks (3.259.0, 2026-11-28). An output that fails ends the wait, and the SDK reports it.
    """
    settings: Any = SETTINGS

    async def run() -> None:
        program()
        while True:
            with settings.lock:
                outputs = list(settings.outputs)
            pending = [each for each in outputs if not each.done()]
            if not pending or any(each.done() and (each.cancelled() or each.exception()) for each in outputs):
                return
            await asyncio.wait(pending, return_when=asyncio.FIRST_EXCEPTION)

    return run


@contextmanager
def _as_a_language_host_does(folder: Path) -> Generator[None]:
    """Run in the program's folder with its modules first in the path.

    Then forget them, so that the next run imports them again and declares.
    """
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        with chdir(folder):
            yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and Path(file).is_relative_to(folder) and not _is_installed(Path(file)):
                del sys.modules[name]


def _is_installed(file: Path) -> bool:
    """Return whether a module belongs to the environment, which may be in the project's folder, or to Flexspot itself."""
    return file.is_relative_to(sys.prefix) or file.resolve().is_relative_to(_OWN)
