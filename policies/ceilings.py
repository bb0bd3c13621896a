"""Whether what bounds capacity is finite: one judgement for pools of every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.inventory import Ceiling
from policies.rule import PASSES, Parameter, Parameters, fails, undecided
from policies.unknown import UNKNOWN, Tri, any_of

if TYPE_CHECKING:
    from capacity.values.verdict import Outcome
    from policies.inventory import Bounds

MOST = (
    Parameter("most", 100_000, "The highest number of nodes or GPUs that counts as a limit."),
    Parameter("most-cores-or-gb", 10_000_000, "The highest number of cores or GB of memory that counts as a limit."),
)
"""From where on a number is none: nobody could ever pay for it."""


def bounded(bounds: Bounds, parameters: Parameters, makes: str) -> Outcome:
    """Passes where every group of bounds holds a finite number. `makes` begins the sentence: "it makes GPU nodes"."""

    def most(ceiling: Ceiling) -> int:
        return parameters.number("most" if ceiling.unit in {Ceiling.NODES, Ceiling.GPUS} else "most-cores-or-gb")

    def finite(ceiling: Ceiling) -> Tri:
        if ceiling.amount is UNKNOWN:
            return UNKNOWN
        return ceiling.amount is not None and 0 <= ceiling.amount <= most(ceiling)

    answers = [(group, any_of(map(finite, group))) for group in bounds]
    if missing := [group for group, answer in answers if answer is False]:
        fields = ", ".join(" or ".join(ceiling.field for ceiling in group) for group in missing)
        highest = min(most(ceiling) for group in missing for ceiling in group)
        # Within a group one is enough; each of several groups needs its own.
        joint = " or " if len(missing) == 1 else ", "
        units = joint.join(sorted({ceiling.unit for group in missing for ceiling in group}))
        return fails(
            f"{makes} without a limit: {fields} is not set to a number from 0 to {highest}",
            f"set {fields} to the most {units} that you would pay for",
        )
    if unknown := [group for group, answer in answers if answer is UNKNOWN]:
        return undecided(f"{', '.join(' or '.join(ceiling.field for ceiling in group) for group in unknown)} is not known yet")
    return PASSES
