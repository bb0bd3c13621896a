"""`flexspot chargeback rules`: a rules file on standard output, and rejected labels."""

from __future__ import annotations

import pytest
import yaml
from typer.testing import CliRunner

from flexspot.capacity.telemetry import rule_groups, rules_spec
from flexspot.infra.cli.app import app


def test_rules_are_printed_as_a_prometheus_file_for_the_given_labels() -> None:
    every = CliRunner().invoke(app, ["chargeback", "rules"])
    part = CliRunner().invoke(app, ["chargeback", "rules", "--label", "cluster=prod", "--label", "region=eu=1"])

    assert yaml.safe_load(every.stdout) == rules_spec(rule_groups())
    assert yaml.safe_load(part.stdout) == rules_spec(rule_groups({"cluster": "prod", "region": "eu=1"}))


@pytest.mark.parametrize("label", ["cluster", "cluster=", "=prod", "my-cluster=prod", "1st=prod"])
def test_a_label_that_prometheus_rejects_is_bad_usage(label: str) -> None:
    result = CliRunner().invoke(app, ["chargeback", "rules", "--label", label])

    assert result.exit_code == 2
    assert "is not NAME=VALUE of a Prometheus label" in " ".join(result.output.replace("│", "").split())
