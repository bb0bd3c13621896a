"""`flexspot rules test`: own rules on fixtures whose names give the expected verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from lint_runs import ONE_RULE, RIGHT, RULES, WRONG, configured
from typer.testing import CliRunner

from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def fixtures(folder: Path, **files: dict[str, Any]) -> None:
    for name, manifest in files.items():
        path = folder / "flexspot-rules" / "image-of-our-registry" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(manifest))


def tried(folder: Path) -> tuple[int, str]:
    ended = CliRunner().invoke(app, ["rules", "test", "--config", str(folder / "flexspot-lint.yaml")])
    return ended.exit_code, ended.output


def test_fixtures_that_are_right_pass(tmp_path: Path) -> None:
    configured(tmp_path, ONE_RULE)
    fixtures(tmp_path, passes_one=RIGHT, fails_one=WRONG, ignores_one={**WRONG, "kind": "StatefulSet"})

    assert tried(tmp_path) == (0, "1 rules, 3 objects as their files say, 0 problems.\n")


def test_an_object_that_gets_another_verdict_is_reported_with_its_place(tmp_path: Path) -> None:
    configured(tmp_path, ONE_RULE)
    fixtures(tmp_path, passes_one=WRONG, fails_one=RIGHT)

    code, output = tried(tmp_path)

    assert code == 1
    assert "passes_one.yaml:1: image-of-our-registry fails, and the file says passes. a container's image is not of" in output
    assert "fails_one.yaml:1: image-of-our-registry passes, and the file says fails." in output


def test_a_rule_without_fixtures_is_not_tested(tmp_path: Path) -> None:
    configured(tmp_path, RULES)
    fixtures(tmp_path, passes_one=RIGHT, fails_one=WRONG)

    code, output = tried(tmp_path)

    assert code == 1
    assert "quota-is-small: there is no object in flexspot-rules/quota-is-small/passes_*.yaml" in output


def test_without_own_rules_it_is_bad_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    nowhere = CliRunner().invoke(app, ["rules", "test"])
    configured(tmp_path, "closed: true\n")
    none = CliRunner().invoke(app, ["rules", "test", "--config", "flexspot-lint.yaml"])

    problems = [each.exception.problem for each in (nowhere, none) if isinstance(each.exception, ExplainedError)]
    assert problems == ["no flexspot-lint.yaml here or above has own rules.", "flexspot-lint.yaml has no own rules."]


def test_an_unreadable_fixture_is_reported_with_its_place(tmp_path: Path) -> None:
    configured(tmp_path, ONE_RULE)
    fixtures(tmp_path, passes_one=RIGHT, fails_one=WRONG)
    folder = tmp_path / "flexspot-rules" / "image-of-our-registry"
    (folder / "passes_folder.yaml").mkdir()
    (folder / "fails_link.yaml").symlink_to(tmp_path / "nowhere")
    (folder / "passes_broken.yaml").write_text("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a\nspec: {}\n")

    code, output = tried(tmp_path)

    assert code == 1
    assert f"{folder}/passes_folder.yaml:1: it cannot be opened: Is a directory" in output
    assert f"{folder}/fails_link.yaml:1: it cannot be opened: No such file" in output
    assert f"{folder}/passes_broken.yaml:" in output
    assert "1 rules, 2 objects as their files say, 3 problems." in output


def test_a_disabled_rule_is_tested(tmp_path: Path) -> None:
    configured(tmp_path, ONE_RULE.replace("level: mandatory", "level: disabled"))
    fixtures(tmp_path, passes_one=RIGHT, fails_one=WRONG)

    assert tried(tmp_path) == (0, "1 rules, 2 objects as their files say, 0 problems.\n")
