"""The stack files of the project that a command is started in, as commands read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from infra.project import project_here

if TYPE_CHECKING:
    from capacity.plan.build import StackPlan

Stack = Annotated[str, typer.Option("--stack", "-s", help="Which stack: NAME of Pulumi.NAME.yaml in the project's folder of stacks.")]


def planned(stack: str) -> StackPlan:
    """The settings of a stack and their plan. Raises ExplainedError with everything that is wrong with them."""
    from capacity.values.errors import ExitCode, ExplainedError, SettingsError  # noqa: PLC0415
    from infra.rules import checked_stack  # noqa: PLC0415

    project = project_here()
    path = project.stack_file(stack)
    try:
        return checked_stack(path)
    except SettingsError as error:
        told = tuple(map(str, error.problems))
        remedy = "fix each line above, then run again."
        raise ExplainedError(f"{project.shown(path)} cannot be used.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=told) from error
