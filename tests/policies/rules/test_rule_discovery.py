"""The folder of rules: every file holds one, under its own name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from policies import rules

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_without_its_rule_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nameless_problem.py").write_text("")
    monkeypatch.setattr(rules, "__path__", [str(tmp_path)])

    with pytest.raises(TypeError, match=r"nameless_problem\.py holds no RULE named nameless-problem"):
        rules.all_rules.__wrapped__()
