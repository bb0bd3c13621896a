"""The line at the end of a preview with a change's monthly cost, compared with the last deployment as the real engine reports it."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from pulumi import automation

from flexspot.components.monthly_cost import MonthlyCost, SpendingArgs
from flexspot.infra.cli.command_line import planned
from flexspot.infra.cli.stacks import deploying as cost_line
from flexspot.infra.cli.stacks.deploying import DeployedCost, show_cost_line

if TYPE_CHECKING:
    from pathlib import Path

    from flexspot.lab.tools.build import Tools


def declare(expected: str, worst: str) -> None:
    spending: SpendingArgs = {
        "owner": "dev",
        "expected_usd": expected,
        "worst_case_usd": worst,
        "idle_floor_usd": "1.00",
        "unknown_prices": [],
    }
    MonthlyCost("monthly-cost", {"environment": spending, "teams": []})


@pytest.mark.engine
def test_the_deployed_cost_is_read_from_the_engines_events(tools: Tools, tmp_path: Path) -> None:
    options = automation.LocalWorkspaceOptions(
        work_dir=str(tmp_path),
        project_settings=automation.ProjectSettings("spending", "python"),
        pulumi_command=automation.PulumiCommand(root=str(tools.links)),
        env_vars={
            "PULUMI_BACKEND_URL": f"file://{tmp_path}",
            "PULUMI_CONFIG_PASSPHRASE": "",
            "PULUMI_HOME": str(tmp_path / "home"),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        },
    )
    stack = automation.create_or_select_stack("test", "spending", lambda: declare("100.50", "2000.00"), opts=options)
    first, unchanged, changed = DeployedCost(), DeployedCost(), DeployedCost()

    stack.preview(on_event=first.hear)
    stack.up()
    stack.preview(on_event=unchanged.hear)
    stack.workspace.program = lambda: declare("80.00", "1500.00")
    stack.preview(on_event=changed.hear)

    assert first.usd == {}
    assert unchanged.usd == changed.usd == {"expected_usd": Decimal("100.50"), "worst_case_usd": Decimal("2000.00")}


def test_the_cost_line_shows_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(cost_line.out, "print", lines.append)
    found, deployed = planned("dev-eks"), DeployedCost()

    # A lab has no cost.
    show_cost_line(planned("local"))
    show_cost_line(found, deployed)
    deployed.usd = {"expected_usd": Decimal("500.00")}
    show_cost_line(found, deployed)

    first, changed = lines
    expected = Decimal(first.partition("expected ")[2].removeprefix("at least ").partition(", with")[0].replace(",", ""))
    assert "(" not in first
    assert f" ({expected - 500:+,.2f}), with nothing running" in changed
    assert "worst case" in changed
    assert "no change" not in changed
