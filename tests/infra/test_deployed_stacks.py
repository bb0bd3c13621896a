"""`flexspot stacks`, `outputs` and `kubeconfig`: facts about stacks without asking a cloud, and outputs of deployed stacks."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import TYPE_CHECKING
from unittest.mock import MagicMock, create_autospec

import pytest
from typer.testing import CliRunner

from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.cli.app import app
from flexspot.infra.deployment.engine import StackRun

if TYPE_CHECKING:
    from pathlib import Path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


@pytest.mark.slow
def test_stacks_are_listed_with_the_number_of_resources_in_their_state_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / ".pulumi" / "stacks" / "flexspot" / "dev-eks.json"
    state.parent.mkdir(parents=True)
    state.write_text(json.dumps({"version": 3, "checkpoint": {"latest": {"resources": [{}, {}]}}}))

    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path}")
    in_files = {each["stack"]: each for each in json.loads(run("stacks", "--format", "json"))}
    monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://states")

    assert {name: in_files[name]["resources"] for name in ("dev-eks", "prod-gke", "local")} == {"dev-eks": 2, "prod-gke": 0, "local": 0}
    assert (in_files["prod-gke"]["cloud"], in_files["prod-gke"]["environment"]) == ("gke", "prod")
    assert "not known here: flexspot outputs -s prod-gke" in run("stacks")


def test_a_deployed_stack_has_outputs_and_access_to_its_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    deployed = create_autospec(StackRun, instance=True)
    deployed.outputs.return_value = {"credentials_command": "aws eks", "buckets": {"data": "s3://a"}}
    monkeypatch.setattr("flexspot.infra.cli.stacks.deploying.stack_run", MagicMock(return_value=nullcontext(deployed)))

    assert run("outputs", "-s", "local") == 'credentials_command: aws eks\nbuckets: {\n  "data": "s3://a"\n}\n'
    assert run("kubeconfig", "-s", "local") == "aws eks\n"
    deployed.outputs.return_value = {}
    with pytest.raises(ExplainedError, match="stack local is not deployed"):
        run("outputs", "-s", "local")
