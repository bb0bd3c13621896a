"""Every planted defect. Not a test.

A row in one of the lists here is a defect in what a shipped stack declares. Of a rule without one its failing fixtures are put beside the
stack instead. Both clouds have a row where they write the same thing each in its own way; else one will do.
"""

from __future__ import annotations

from planted_capacity_defects import CAPACITY_DEFECTS
from planted_defects import DEFECTS, Defect, planted
from planted_platform_defects import PLATFORM_DEFECTS

from policies.rules import all_rules

EVERY_DEFECT = [*DEFECTS, *CAPACITY_DEFECTS, *PLATFORM_DEFECTS]

WITHOUT_ROW = sorted({rule.name for rule in all_rules()} - {each.rule for each in EVERY_DEFECT})
"""Such as those about work, which no shipped stack has, and about components, which planting leaves out."""


def in_one_preview(stack: str) -> list[Defect]:
    """Defects in what a stack declares that have no resource in common, so that one preview shows them apart."""
    touched, chosen = set[str](), list[Defect]()
    for defect in (each for each in EVERY_DEFECT if each.stack == stack):
        before, after = planted(defect)
        names = {defect.on} | {name for name in before if before[name] != after[name]}
        if before.keys() == after.keys() and not touched & names:
            touched |= names
            chosen.append(defect)
    return chosen
