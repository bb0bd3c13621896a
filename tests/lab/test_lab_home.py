"""Names, folders and saved state of labs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexspot.lab.home import LabHome, LabState, StaleStateError, lab_names, load_state
from flexspot.lab.progress import ExitCode, LabError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", ["default", "pr-12", "a", "x" * 32])
def test_a_name_is_lower_case_letters_digits_and_inner_hyphens(name: str, tmp_path: Path) -> None:
    assert LabHome(tmp_path, name).folder == tmp_path / name


@pytest.mark.parametrize("name", ["", "Default", "../other", "a/b", "-x", "x-", "x" * 33, "a b"])
def test_any_other_name_is_refused_as_bad_usage(name: str, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="is not a name for a lab") as refused:
        LabHome(tmp_path, name)

    assert refused.value.exit_code is ExitCode.BAD_USAGE


def test_state_survives_being_written_and_read(tmp_path: Path) -> None:
    state = LabState(ports={"etcd": 21000}, fixed_api_port=26443, installed="abc")

    state.save(tmp_path / "state.json")

    assert load_state(tmp_path / "state.json") == state


def test_a_missing_state_is_none(tmp_path: Path) -> None:
    assert load_state(tmp_path / "state.json") is None


@pytest.mark.parametrize(
    "content,why",
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"version": 1, "ports": {"etcd": "many"}}', "cannot be read"),
        ('{"version": 7}', "has layout 7"),
        ("{}", "has layout None"),
    ],
)
def test_a_stale_state_names_the_reason(content: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(content)

    with pytest.raises(StaleStateError, match=why):
        load_state(tmp_path / "state.json")


def test_the_labs_of_a_folder_are_those_with_a_state(tmp_path: Path) -> None:
    for name in ("b", "a"):
        LabHome(tmp_path, name).folder.mkdir()
        LabState().save(LabHome(tmp_path, name).state)
    (tmp_path / "stray").mkdir()

    assert lab_names(tmp_path) == ["a", "b"]
