"""Every planted defect. Not a test.

A new rule needs a row in one of the lists here, or stands in WITHOUT_DEFECT with the reason: what it looks at is in no shipped stack and
cannot be added to one. Both clouds have a row where they write the same thing each in its own way; else one will do, since rows
are previewed.
"""

from __future__ import annotations

from planted_capacity_defects import CAPACITY_DEFECTS
from planted_defects import DEFECTS, Defect, planted
from planted_platform_defects import PLATFORM_DEFECTS
from planted_workload_defects import WORKLOAD_DEFECTS

from policies.rules import all_rules

EVERY_DEFECT = [*DEFECTS, *CAPACITY_DEFECTS, *WORKLOAD_DEFECTS, *PLATFORM_DEFECTS]

WITHOUT_DEFECT: dict[str, str] = {
    "budget-exceeded": "it looks at a component, which planting leaves out; test_plan_out has previews that it refuses and lets through",
    "budget-nearly-used": "it looks at a component, which planting leaves out; and it is advice, which stops no preview",
}
"""Rules that no row can be about, each with the reason."""

LAST_ALONE = "FLX026"
"""Defects of the rules up to this code have a preview each; those of later ones share one where they touch different resources."""

_CODES = {rule.name: rule.code for rule in all_rules()}
ALONE = [defect for defect in EVERY_DEFECT if _CODES[defect.rule] <= LAST_ALONE]
SHARING = [defect for defect in EVERY_DEFECT if _CODES[defect.rule] > LAST_ALONE]


def shared_previews(stack: str) -> list[list[Defect]]:
    """The defects that share previews of a stack, in as few as keep them apart."""
    made: list[tuple[set[str], list[Defect]]] = []
    for defect in (each for each in SHARING if each.stack == stack):
        names = _touched(defect)
        with_room = [each for each in made if not each[0] & names]
        if with_room:
            with_room[0][0].update(names)
            with_room[0][1].append(defect)
        else:
            made.append((names, [defect]))
    return [defects for _, defects in made]


def _touched(defect: Defect) -> set[str]:
    """The names of the resources that a defect changes, adds or is told of."""
    before, after = planted(defect)
    return {defect.on} | {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
