"""A stack at two revisions: its offline previews, what becomes of its resources, what clouds refuse, verdicts, and a month's cost."""

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
from flexspot.infra.review.resource_changes import Becomes, as_the_engine_marks, resource_changes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal

    from flexspot.infra.review.resource_changes import Ask, ResourceChange

_GONE = frozenset({Becomes.DELETED, Becomes.REPLACED})


@dataclass(frozen=True)
class StackReview:
    """One stack. `base` and `head` are its previews, None where a revision does not have it. A cost is None where it is not known.

    `cost` is that after the change, and `former` that of a stack which leaves.
    """

    stack: str
    base: StackPreview | None
    head: StackPreview | None
    changes: tuple[ResourceChange, ...]
    losses: tuple[Loss, ...]
    refusals: tuple[Refusal, ...]
    new_verdicts: tuple[PolicyVerdict, ...]
    fixed_verdicts: tuple[PolicyVerdict, ...]
    cost: PlanCost | None = None
    comparison: PlanComparison | None = None
    former: PlanCost | None = None

    @property
    def refused(self) -> bool:
        """Whether the stack cannot be deployed as it would be after the change."""
        return (self.head is not None and bool(self.head.refused)) or any(each.certain for each in self.refusals)

    @property
    def is_new(self) -> bool:
        """Whether the change brings the stack."""
        return self.base is None

    @property
    def same(self) -> bool:
        """Whether nothing is to be said of it."""
        changed = self.changes or self.new_verdicts or self.fixed_verdicts or self.refusals or (self.comparison and self.comparison.lines)
        return not changed and not self.refused and self.base is not None and self.head is not None and not self.base.refused

    @property
    def runs_on_a_cloud(self) -> bool | None:
        """Whether anybody bills it after the change; None where that is not known, since it has no plan."""
        if self.head is None:
            return False
        return None if self.head.plan is None else self.cost is not None

    @property
    def more_usd(self) -> Decimal | None:
        """How much more a month is expected to cost; None where that is not known, since one side that there is has no plan."""
        if self.comparison is not None:
            return self.comparison.difference.expected_usd
        if self.base is None and self.cost is not None:
            return self.cost.total.expected_usd
        return None if self.head is not None or self.former is None else -self.former.total.expected_usd

    def count(self, becomes: Becomes) -> int:
        """How many resources become this."""
        return sum(1 for each in self.changes if each.becomes is becomes)


def stack_review(stack: str, base: StackPreview | None, head: StackPreview | None, ask: Ask, unknown: object) -> StackReview:
    """Holds both previews against each other. Resources are compared only where both have a plan: a refused one may lack some of them."""
    before, after = (side.resources if side is not None else [] for side in (base, head))
    whole = all(side is None or side.plan is not None for side in (base, head))
    changes = resource_changes(before, after, ask, unknown) if whole else []
    lost = [
        loss_of(each.urn, each.old, replaced=each.becomes is Becomes.REPLACED, paths=each.paths)
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
    """Those of one side alone. What a policy says of a resource may be in other words, if it is said of it on both sides."""
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
    """By the rules that clouds have beside their providers' own."""
    told = [
        InputChange(
            each.token,
            each.name,
            None if each.old is None else as_the_engine_marks(each.old),
            None if each.new is None else as_the_engine_marks(each.new),
            replaced=each.becomes is Becomes.REPLACED,
            gone_first=each.deletes_first,
        )
        for each in changes
    ]
    touched = {each.urn for each in changes}
    for resource in after:
        if (urn := str(resource["urn"])) not in touched:
            inputs = as_the_engine_marks(resource["inputs"])
            told.append(InputChange(str(resource["type"]), urn.rpartition("::")[2], inputs, inputs))
    return refusals(told)


def cost_of_untouched(path: Path) -> PlanCost | None:
    """What a stack that is not previewed costs in a month, by its file; None on no cloud. Raises SettingsError or FileNotFoundError."""
    found = plan_of_stack_file(path)
    return None if found.plan.cloud is Platform.LOCAL else plan_cost(costed(found.plan), found.prices, shipped_use())


def _cost(base: StackPreview | None, head: StackPreview | None) -> tuple[PlanCost | None, PlanComparison | None]:
    """What the stack costs after the change, and against before; at the prices that each revision has."""
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
    """What a policy says of a resource (`urn`, "" for the stack as a whole). `mandatory` ones keep the stack from being deployed."""

    policy: str
    urn: str
    message: str
    mandatory: bool

    @property
    def resource(self) -> str:
        """The resource as people read it: the last word of its type, and its name."""
        parts = self.urn.split("::", 3)
        return f"{parts[2].rpartition(':')[2]} {parts[3]}" if len(parts) == 4 else ""  # noqa: PLR2004 -- of a URN


@dataclass(frozen=True)
class StackPreview:
    """What a preview said. `plan` is the path of the plan file, None where there is no plan.

    `refused` are the lines that say why it failed, none where the stack can be deployed.
    """

    plan: Path | None
    refused: tuple[str, ...] = ()

    @property
    def resources(self) -> list[dict[str, Any]]:
        """The resources, as the plan file has them."""
        return self._content["resources"]

    @property
    def verdicts(self) -> list[PolicyVerdict]:
        """What the policies said."""
        return [
            PolicyVerdict(each["policy"], each["resource"] or "", each["message"], each["level"] == _MANDATORY)
            for each in self._content["policies"]
        ]

    @cached_property
    def _content(self) -> dict[str, Any]:
        return {"resources": [], "policies": []} if self.plan is None else json.loads(self.plan.read_text(encoding="utf-8"))


def stack_preview(stack: str, project: Path, checkout: Path, plan: Path) -> StackPreview:
    """Previews `stack` of the project in the folder `project` of a copy of the repository, and writes the plan file `plan`.

    Whatever keeps it from being deployed is in what is returned. Raises ExplainedError where the command cannot be run at all.
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
            f"a preview of stack {stack} cannot be run: {error.strerror}.", "fix it, and run the command again."
        ) from error
    if done.returncode < 0 or done.returncode == _INTERRUPTED:
        remedy = "run the same command again; a machine short of memory kills programs."
        raise ExplainedError(f"the preview of stack {stack} was killed ({done.returncode}); it is not reviewed.", remedy)
    there = plan if plan.is_file() else None
    if there is not None:
        # Where the copies lie is no part of the change.
        there.write_text(there.read_text(encoding="utf-8").replace(json.dumps(str(checkout))[1:-1], _CHECKOUT), encoding="utf-8")
    if done.returncode == 0 and there is not None:
        return StackPreview(there)
    told = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(_WHY)]
    return StackPreview(
        there, tuple(told or done.stderr.splitlines()[-5:] or [f"it exited with {done.returncode} and no output."])[:_LINES]
    )


def _command(checkout: Path) -> list[str]:
    # A folder of the project must not take the place of a library's module; Flexspot's own repository is to run its own code.
    return [sys.executable, *([] if _is_flexspot(checkout) else ["-P"]), "-m", "flexspot"]


def _environment(checkout: Path) -> dict[str, str]:
    own = {"NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
    if _is_flexspot(checkout):
        others = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
        own["PYTHONPATH"] = os.pathsep.join([*(str(each.parent) for each in sorted(checkout.glob("*/flexspot"))), *others])
        # A copy has no environment of its own; its policy pack starts in the first Python on PATH, which is to be this one.
        own["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), *filter(None, [os.environ.get("PATH")])])
    return {**os.environ, **own}


def _is_flexspot(checkout: Path) -> bool:
    return (checkout / "infra" / "flexspot" / "infra" / "program.py").is_file()
