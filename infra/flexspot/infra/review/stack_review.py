"""A stack at two revisions: offline previews, resource changes, expected refusals of clouds, policy verdicts and monthly cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.cost.costed_plan import costed, read_plan_file, shipped_use
from flexspot.capacity.cost.plan_comparison import PlanComparison, compared
from flexspot.capacity.cost.plan_cost import PlanCost, plan_cost
from flexspot.capacity.plan.build import plan_of_stack_file
from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.deployment.api_refusals import InputChange, Refusal, refusals
from flexspot.infra.deployment.losses import Loss, in_order, loss_of
from flexspot.infra.review.resource_changes import ResourceOperation, as_the_engine_marks, resource_changes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal

    from flexspot.infra.review.resource_changes import Ask, ResourceChange

_GONE = frozenset({ResourceOperation.DELETED, ResourceOperation.REPLACED})


@dataclass(frozen=True)
class StackReview:
    """Review of one stack. A cost is None if it is not known."""

    stack: str
    base: StackPreview | None
    """None if the stack does not exist before the change."""
    head: StackPreview | None
    """None if the stack does not exist after the change."""
    changes: tuple[ResourceChange, ...]
    losses: tuple[Loss, ...]
    refusals: tuple[Refusal, ...]
    new_verdicts: tuple[PolicyVerdict, ...]
    fixed_verdicts: tuple[PolicyVerdict, ...]
    cost: PlanCost | None = None
    """Cost after the change."""
    comparison: PlanComparison | None = None
    former: PlanCost | None = None
    """Cost of a stack that the change removes."""

    @property
    def refused(self) -> bool:
        """True if the stack cannot be deployed after the change."""
        return (self.head is not None and bool(self.head.refused)) or any(each.certain for each in self.refusals)

    @property
    def is_new(self) -> bool:
        """True if the change adds the stack."""
        return self.base is None

    @property
    def same(self) -> bool:
        """True if there is nothing to report."""
        changed = self.changes or self.new_verdicts or self.fixed_verdicts or self.refusals or (self.comparison and self.comparison.lines)
        return not changed and not self.refused and self.base is not None and self.head is not None and not self.base.refused

    @property
    def runs_on_a_cloud(self) -> bool | None:
        """True if a cloud bills the stack after the change. None if not known because it has no plan."""
        if self.head is None:
            return False
        return None if self.head.plan is None else self.cost is not None

    @property
    def more_usd(self) -> Decimal | None:
        """Increase of the expected monthly cost. None if not known because an existing side has no plan."""
        if self.comparison is not None:
            return self.comparison.difference.expected_usd
        if self.base is None and self.cost is not None:
            return self.cost.total.expected_usd
        return None if self.head is not None or self.former is None else -self.former.total.expected_usd

    def count(self, becomes: ResourceOperation) -> int:
        """Return the number of resources with this kind of change."""
        return sum(1 for each in self.changes if each.becomes is becomes)


def stack_review(stack: str, base: StackPreview | None, head: StackPreview | None, ask: Ask, unknown: object) -> StackReview:
    """Compare both previews. Resources are compared only if both have a plan, since a refused preview may lack some."""
    before, after = (side.resources if side is not None else [] for side in (base, head))
    whole = all(side is None or side.plan is not None for side in (base, head))
    changes = resource_changes(before, after, ask, unknown) if whole else []
    lost = [
        loss_of(each.urn, each.old, replaced=each.becomes is ResourceOperation.REPLACED, paths=each.paths)
        for each in changes
        if each.becomes in _GONE and each.old is not None
    ]
    new, fixed = _verdicts(base, head)
    cost, comparison = _cost(base, head)
    return StackReview(
        stack,
        base,
        head,
        tuple(changes),
        tuple(in_order(each for each in lost if each is not None)),
        tuple(_refusals(changes, after)) if whole and base is not None else (),
        tuple(new),
        tuple(fixed),
        cost,
        comparison,
        None if head is not None or base is None else _cost(None, base)[0],
    )


def _verdicts(base: StackPreview | None, head: StackPreview | None) -> tuple[list[PolicyVerdict], list[PolicyVerdict]]:
    """Return new and fixed verdicts: those on one side only. Verdicts match by policy and resource, even if their wording differs."""
    sides = [side.verdicts if side is not None else [] for side in (base, head)]
    before, after = (Counter((each.policy, each.urn) for each in side) for side in sides)
    return list(_left(sides[1], before)), list(_left(sides[0], after))


def _left(verdicts: Iterable[PolicyVerdict], others: Counter[tuple[str, str]]) -> Iterable[PolicyVerdict]:
    left = Counter(others)
    for each in verdicts:
        left[each.policy, each.urn] -= 1
        if left[each.policy, each.urn] < 0:
            yield each


def _refusals(changes: Iterable[ResourceChange], after: Iterable[dict[str, object]]) -> list[Refusal]:
    """Return refusals by rules that the clouds apply in addition to those of their providers."""
    changed = [
        InputChange(
            each.token,
            each.name,
            None if each.old is None else as_the_engine_marks(each.old),
            None if each.new is None else as_the_engine_marks(each.new),
            replaced=each.becomes is ResourceOperation.REPLACED,
            gone_first=each.deletes_first,
        )
        for each in changes
    ]
    touched = {each.urn for each in changes}
    for resource in after:
        if (urn := str(resource["urn"])) not in touched:
            inputs = as_the_engine_marks(resource["inputs"])
            changed.append(InputChange(str(resource["type"]), urn.rpartition("::")[2], inputs, inputs))
    return refusals(changed)


def cost_of_untouched(path: Path) -> PlanCost | None:
    """Return the monthly cost of a stack without a preview, from its file. None for a local one.

    Raises SettingsError or FileNotFoundError.
    """
    found = plan_of_stack_file(path)
    return None if found.plan.cloud is Platform.LOCAL else plan_cost(costed(found.plan), found.prices, shipped_use())


def _cost(base: StackPreview | None, head: StackPreview | None) -> tuple[PlanCost | None, PlanComparison | None]:
    """Return the cost after the change and the comparison with before, each at the prices of its revision."""
    if head is None or head.plan is None:
        return None, None
    file, use = read_plan_file(head.plan), shipped_use()
    if file.plan.cloud is Platform.LOCAL:
        return None, None
    found = plan_cost(file.plan, file.prices(), use)
    if base is None or base.plan is None:
        return found, None
    earlier = read_plan_file(base.plan)
    return found, compared(plan_cost(earlier.plan, earlier.prices(), use), found)


_WHY = ("error: ", "  | ", "what to do: ")
_LINES = 40
_MANDATORY = "mandatory"
_INTERRUPTED = 130
_CHECKOUT = "(checkout)"


@dataclass(frozen=True)
class PolicyVerdict:
    """A policy's violation by a resource."""

    policy: str
    urn: str
    """URN of the resource. Empty for the stack as a whole."""
    message: str
    mandatory: bool
    """True if it prevents deployment."""

    @property
    def resource(self) -> str:
        """The resource as shown to people: the last part of its type and its name."""
        parts = self.urn.split("::", 3)
        return f"{parts[2].rpartition(':')[2]} {parts[3]}" if len(parts) == 4 else ""  # noqa: PLR2004 -- of a URN


@dataclass(frozen=True)
class StackPreview:
    """The result of a preview."""

    plan: Path | None
    """Path of the plan file. None if there is no plan."""
    refused: tuple[str, ...] = ()
    """Lines of output that explain why the preview failed. Empty if the stack can be deployed."""

    @property
    def resources(self) -> list[dict[str, Any]]:
        """The resources in the plan file."""
        return self._content["resources"]

    @property
    def verdicts(self) -> list[PolicyVerdict]:
        """The verdicts of the policies."""
        return [
            PolicyVerdict(each["policy"], each["resource"] or "", each["message"], each["level"] == _MANDATORY)
            for each in self._content["policies"]
        ]

    @cached_property
    def _content(self) -> dict[str, Any]:
        return {"resources": [], "policies": []} if self.plan is None else json.loads(self.plan.read_text(encoding="utf-8"))


def stack_preview(stack: str, project: Path, checkout: Path, plan: Path) -> StackPreview:
    """Preview `stack` of the project in the folder `project` of a copy of the repository, and write the plan file `plan`.

    A refusal is part of the result. Raises ExplainedError if the command cannot be run at all or is killed.
    """
    command = [*_command(checkout), "preview", "--offline", "--stack", stack, "--plan-out", str(plan)]
    try:
        done = subprocess.run(  # noqa: S603 -- this very command
            command,
            cwd=project,
            env=_environment(checkout),
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except OSError as error:
        raise ExplainedError(
            f"stack {stack}: the preview cannot be started: {error.strerror}.", "fix the cause, and run the same command again."
        ) from error
    if done.returncode < 0 or done.returncode == _INTERRUPTED:
        remedy = "run the same command again; a machine that is short of memory kills programs."
        raise ExplainedError(f"stack {stack}: the preview was killed ({done.returncode}), so the stack is not reviewed.", remedy)
    there = plan if plan.is_file() else None
    if there is not None:
        # The folder of the copy is not part of the change.
        there.write_text(there.read_text(encoding="utf-8").replace(json.dumps(str(checkout))[1:-1], _CHECKOUT), encoding="utf-8")
    if done.returncode == 0 and there is not None:
        return StackPreview(there)
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(_WHY)]
    return StackPreview(
        there, tuple(lines or done.stderr.splitlines()[-5:] or [f"the preview printed nothing (exit code {done.returncode})."])[:_LINES]
    )


def _command(checkout: Path) -> list[str]:
    # -P: a folder of the project must not shadow a library's module. Flexspot's own repository runs its own code.
    return [sys.executable, *([] if _is_flexspot(checkout) else ["-P"]), "-m", "flexspot"]


def _environment(checkout: Path) -> dict[str, str]:
    own = {"NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
    if _is_flexspot(checkout):
        others = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
        own["PYTHONPATH"] = os.pathsep.join([*(str(each.parent) for each in sorted(checkout.glob("*/flexspot"))), *others])
        # A copy has no Python environment. Its policy pack starts with the first Python on PATH, which must be this one.
        own["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), *filter(None, [os.environ.get("PATH")])])
    return {**os.environ, **own}


def _is_flexspot(checkout: Path) -> bool:
    return (checkout / "infra" / "flexspot" / "infra" / "program.py").is_file()
