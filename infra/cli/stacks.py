"""The stack files of the checkout, as commands find and read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from infra.checkout import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

    from capacity.plan.build import StackPlan

Stack = Annotated[str, typer.Option("--stack", "-s", help="Which stack: NAME of stacks/Pulumi.NAME.yaml.")]

STACKS = CHECKOUT / "stacks"


def stack_names() -> list[str]:
    """The stacks that have a file."""
    return sorted(each.stem.removeprefix("Pulumi.") for each in STACKS.glob("Pulumi.*.yaml"))


def stack_file(stack: str) -> Path:
    """The file of a stack. Raises ExplainedError for one that is not there."""
    from capacity.values.errors import ExitCode, ExplainedError, nearest  # noqa: PLC0415

    path = STACKS / f"Pulumi.{stack}.yaml"
    if stack not in stack_names():
        raise ExplainedError(f"there is no stack {stack}.", nearest(stack, stack_names()), exit_code=ExitCode.BAD_USAGE)
    return path


def planned(stack: str) -> StackPlan:
    """The settings of a stack and their plan. Raises ExplainedError with everything that is wrong with them."""
    from capacity.values.errors import ExitCode, ExplainedError, SettingsError  # noqa: PLC0415
    from infra.rules import checked_stack  # noqa: PLC0415

    try:
        return checked_stack(stack_file(stack))
    except SettingsError as error:
        told = tuple(map(str, error.problems))
        remedy = "mend each line above, then run again."
        raise ExplainedError(f"stacks/{error.source} cannot be used.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=told) from error
