"""From a stack file to its plan; every problem is reported with its line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.catalog.data_files import DataFileError
from capacity.catalog.platform import VOCABULARIES
from capacity.catalog.price_book import PriceBook, prices_of
from capacity.plan.build import build_plan
from capacity.settings.stack_file import lines_of, read_stack_file
from capacity.values.errors import SettingsError, SettingsProblem

if TYPE_CHECKING:
    from pathlib import Path

    from capacity.plan.model import Plan
    from capacity.settings.platform import PlatformSettings


@dataclass(frozen=True)
class StackPlan:
    """What a stack file says, what follows from it, and the prices that its budgets were checked against."""

    settings: PlatformSettings
    plan: Plan
    prices: PriceBook


def plan_of_stack_file(path: Path) -> StackPlan:
    """The plan of a stack file. Raises SettingsError with everything that is wrong, each with its line, or FileNotFoundError."""
    settings = read_stack_file(path)
    try:
        prices = price_book_of(settings, path.parent, path.name)
        return StackPlan(settings, build_plan(settings, path.name, prices), prices)
    except SettingsError as error:
        raise error.with_lines(lines_of(path.read_text(encoding="utf-8"))) from error


def price_book_of(settings: PlatformSettings, folder: Path, source: str) -> PriceBook:
    """The shipped prices, with those of the settings' own `prices_file` (a path from `folder`) before them.

    Raises SettingsError naming `source` when that file is missing or breaks its schema.
    """
    book = prices_of(VOCABULARIES[settings.cloud].catalog)
    if settings.prices_file is None:
        return book
    try:
        return book.overridden_by(folder / settings.prices_file)
    except FileNotFoundError:
        problem = SettingsProblem("prices_file", repr(settings.prices_file), "is not there", "a path from the stack file's own folder")
    except (DataFileError, OSError, UnicodeDecodeError) as error:
        problem = SettingsProblem(
            "prices_file", repr(settings.prices_file), str(error), "mend the file; it looks like capacity/catalog/prices/*.yaml"
        )
    raise SettingsError(source, [problem])
