"""`flexspot rules list`: every rule, with its configured level."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from flexspot.infra.cli.app import app
from flexspot.policies.lint.configuration import judged_rules

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_every_rule_is_listed_once_with_its_configured_level(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "flexspot-lint.yaml").write_text("flexspot: {image-not-pinned: disabled}\npages: https://git.acme.com/flexspot\n")
    monkeypatch.chdir(tmp_path)

    result = CliRunner().invoke(app, ["rules", "list"])
    listed = json.loads(CliRunner().invoke(app, ["rules", "list", "--format", "json"]).output)

    lines = result.output.splitlines()
    assert [line.split()[1] for line in lines] == [rule.name for rule in sorted(judged_rules(), key=lambda rule: rule.code)]
    [line] = [line for line in lines if " image-not-pinned " in line]
    assert line.split()[2] == "disabled"
    assert {each["rule"]: each["level"] for each in listed}["image-not-pinned"] == "disabled"
    assert all(each["page"].startswith("https://git.acme.com/flexspot/docs/rules/") for each in listed)
    assert all(each["why"] and each["remediation"] and each["finds"] for each in listed)
