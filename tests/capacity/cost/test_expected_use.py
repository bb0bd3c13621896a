"""What a month is expected to be like: the shipped figures, and a file of one's own over them."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.workload_classes import shipped_classes
from capacity.cost.costed_plan import read_use_file, shipped_use
from capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from pathlib import Path


def written(folder: Path, text: str) -> Path:
    path = folder / "use.yaml"
    path.write_text(text)
    return path


def test_every_shipped_class_is_said_something_of_with_a_source() -> None:
    use = shipped_use()

    assert set(use.classes) == set(shipped_classes())
    assert {each.source for each in (*use.classes.values(), use.other_classes)} <= set(use.sources)


def test_a_file_of_ones_own_changes_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    text = "classes: {training: {used_percent: 80, by_capacity_type: {spot: 12.5}}, mine: {hours_per_month: 73}}\nbucket_gib: 500\n"

    use = read_use_file(written(tmp_path, text))

    shipped = shipped_use()
    training = use.classes["training"]
    assert (training.used_percent, training.later_percent) == (80, shipped.classes["training"].later_percent)
    assert training.share(CapacityType.SPOT, first=True) == Decimal("0.125")
    assert training.share(CapacityType.RESERVED, first=True) == Decimal("0.8")
    # A tenth of the month at half the ceiling, as any class of one's own.
    assert use.of_class("mine").share(CapacityType.SPOT, first=True) == Decimal("0.05")
    assert use.of_class("nobody-named") == shipped.other_classes
    assert use.classes["inference"] == shipped.classes["inference"]
    assert (use.bucket_gib, use.nat_gib) == (500, 0)


def test_what_is_said_of_other_classes_is_so_for_all_that_have_no_figures_of_their_own(tmp_path: Path) -> None:
    use = read_use_file(written(tmp_path, "other_classes: {used_percent: 10}\nclasses: {mine: {later_percent: 1}}\n"))

    assert (use.of_class("mine").used_percent, use.of_class("mine").later_percent) == (10, 1)
    assert use.of_class("another").used_percent == 10


@pytest.mark.parametrize(
    "text,told",
    [
        ("classes: {training: {used_percent: 101}}", "classes.training.used_percent: Input should be less than or equal to 100"),
        ("classes: {training: {hours_per_month: 731}}", "classes.training.hours_per_month"),
        ("classes: {training: {used_per_cent: 1}}", "classes.training.used_per_cent: Extra inputs are not permitted"),
        ("bucket_gib: -1", "bucket_gib"),
        ("- a list", "(whole file)"),
        ("classes: [", "is not YAML"),
    ],
)
def test_a_file_that_is_not_understood_is_refused_with_the_field(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ExplainedError) as refused:
        read_use_file(written(tmp_path, text))

    assert refused.value.exit_code is ExitCode.BAD_USAGE
    assert told in str(refused.value)
