"""What is wrong with a request for work, all of it at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from capacity.settings.problems import SettingsProblem


class WorkloadError(ValueError):
    """A request that cannot be met. `whose` is the kind and name of the workload, `problems` hold input, value, what is allowed."""

    def __init__(self, whose: str, problems: Iterable[SettingsProblem]) -> None:
        self.whose = whose
        self.problems = tuple(problems)
        super().__init__("\n".join([f"{whose}: {len(self.problems)} problem(s)", *(f"  {each}" for each in self.problems)]))


def refuse(whose: str, problems: list[SettingsProblem]) -> None:
    """Raises WorkloadError if there are any problems."""
    if problems:
        raise WorkloadError(whose, problems)
