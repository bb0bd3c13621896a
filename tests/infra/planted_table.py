"""Every planted defect. Not a test.

A row in one of the lists here is a defect in what a shipped stack declares. Of a rule without one its failing fixtures are put beside the
stack instead. Both clouds have a row where they write the same thing each in its own way; else one will do, since rows are previewed.
"""

from __future__ import annotations

import functools

from planted_capacity_defects import CAPACITY_DEFECTS
from planted_defects import DEFECTS, Defect, planted
from planted_platform_defects import PLATFORM_DEFECTS
from planted_workload_defects import WORKLOAD_DEFECTS

from policies.rules import all_rules

EVERY_DEFECT = [*DEFECTS, *CAPACITY_DEFECTS, *WORKLOAD_DEFECTS, *PLATFORM_DEFECTS]

WITHOUT_ROW = sorted({rule.name for rule in all_rules()} - {each.rule for each in EVERY_DEFECT})
"""Such as those about components, which planting leaves out."""


@functools.cache
def shared_previews(stack: str) -> list[list[Defect]]:
    """The defects that share previews of a stack, in as few as keep them apart."""
    made: list[tuple[set[str], list[Defect]]] = []
    for defect in (each for each in EVERY_DEFECT if each.stack == stack):
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
