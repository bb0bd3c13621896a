"""What a rung of GKE's ComputeClass gets its nodes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.gpu_machines import is_gpu_machine
from policies.unknown import UNKNOWN, Tri, all_of, any_of, negated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.field import Field
    from policies.objects import ComputeClass
    from policies.unknown import Unknown


def creates_pools(ladder: ComputeClass) -> Tri:
    """Whether GKE may make node pools for the rungs that name none."""
    return ladder.spec.at("nodePoolAutoCreation", "enabled").equals("true")


def made_on_demand(rung: Field) -> Tri:
    """Whether GKE would make pools of GPUs for the rung that are neither Spot, nor flex-start, nor wholly reserved.

    Of the affinities to reservations, AnyBestEffort and None go on to on-demand; without one, so does GKE.
    Source: the definition of ComputeClass, cloud.google.com/v1.
    """
    machine, family = rung.at("machineType").text(), rung.at("machineFamily").text()
    named = UNKNOWN if machine is UNKNOWN or family is UNKNOWN else is_gpu_machine(machine or f"{family}-any")
    return all_of(
        [
            rung.at("nodepools").absent if rung.at("nodepools").known else UNKNOWN,
            any_of([not rung.at("gpu").absent, named]),
            negated(rung.at("spot").equals("true")),
            negated(rung.at("flexStart", "enabled").equals("true")),
            negated(rung.at("reservations", "affinity").equals("Specific", "AnyThenFail")),
        ]
    )


def created_accelerators(ladder: ComputeClass) -> Iterator[str | Unknown]:
    """The GPU types of which GKE may make pools for the ladder."""
    if creates_pools(ladder) is not True:
        return
    for rung in ladder.spec.at("priorities").parts().fields:
        accelerator = rung.at("gpu", "type").text()
        if accelerator is not None:
            yield accelerator
