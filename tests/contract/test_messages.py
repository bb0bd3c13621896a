"""The tables of error messages: one per room, complete and up to date. tests/english.py checks their words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import messages

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

_EXAMPLE = """
def check(names: list[str], most: int) -> None:
    problem = "is listed twice"
    if len(names) > most:
        raise ValueError(f"names: {len(names)} of them; at most {most}. Remove some.")
    refuse("stack", SettingsProblem("names", repr(names), problem, "remove one" if most else "leave it out"))
"""


def test_a_table_has_raised_messages_and_records_with_their_variables_resolved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(_EXAMPLE, encoding="utf-8")

    def only_module(*_places: str) -> list[Path]:
        return [module]

    monkeypatch.setattr(messages, "tracked", only_module)

    assert sorted(messages.messages("anywhere")) == [
        ("module.check", "names (is {names}): is listed twice; remove one / leave it out"),
        ("module.check", "names: {names} of them; at most {most}. Remove some."),
    ]


def test_the_tables_are_those_of_the_source() -> None:
    """When this fails: `python tests/messages.py`, and review the difference as a reader of the messages would."""
    assert {path.name: path.read_text(encoding="utf-8") for path in messages.FOLDER.glob("*.md")} == dict(messages.tables())
