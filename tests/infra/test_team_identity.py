"""Identities of teams' pods in Google Cloud: a service account each or direct access, and conflicts between teams of two stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from program_declarations import declared, shipped

from flexspot.infra.declaring.rules import checked_stack

if TYPE_CHECKING:
    from pathlib import Path

    from flexspot.capacity.plan.model import PlanWarning

ACCOUNT = "gcp:serviceaccount/account:Account"
SERVICE_ACCOUNT = "kubernetes:core/v1:ServiceAccount"


@pytest.mark.slow
def test_direct_teams_have_no_account_and_no_annotation_and_reach_their_folders_and_queues_themselves() -> None:
    settings = shipped("prod-gke")
    settings["cluster"]["team_identity"] = "direct"
    settings["teams"][0]["work_queue"] = {"name": "images"}

    declarations = declared("prod-gke", settings)

    assert [each["accountId"] for each in declarations.inputs_of(ACCOUNT)] == ["prod-nodes"]
    of_teams = [each for each in declarations.inputs_of(SERVICE_ACCOUNT) if each["metadata"]["name"] == "workloads"]
    assert len(of_teams) == len(settings["teams"])
    assert [each for each in of_teams if "iam.gke.io/gcp-service-account" in each["metadata"].get("annotations", {})] == []
    members = {each.name for each in declarations.made.values() if each.type.lower().endswith("iammember")}
    assert {name for name in members if name.endswith("-workload-identity")} == set()
    for team in settings["teams"]:
        assert {f"{team['name']}-storage-checkpoints-user", f"{team['name']}-storage-shared-viewer"} <= members
    assert f"{settings['teams'][0]['name']}.images-worker-subscriber" in members


def write(folder: Path, stack: str, settings: dict[str, Any]) -> Path:
    path = folder / f"Pulumi.{stack}.yaml"
    path.write_text(yaml.safe_dump({"config": {"flexspot:platform": settings}}), encoding="utf-8")
    return path


def warnings(path: Path) -> list[PlanWarning]:
    return [each for each in checked_stack(path).plan.warnings if each.rule == "teams-in-two-clusters-of-a-project"]


def test_teams_of_the_same_name_in_two_clusters_of_a_project_cause_a_warning(tmp_path: Path) -> None:
    prod = shipped("prod-gke")
    write(tmp_path, "prod", prod)

    apart = warnings(write(tmp_path, "staging", {**prod, "environment": "staging", "project": "acme-ai-staging"}))
    together = warnings(write(tmp_path, "staging", {**prod, "environment": "staging"}))

    assert apart == []
    [warning] = together
    assert warning.path == "project"
    assert warning.text.startswith("ads, nlp, search, vision: teams of Pulumi.prod.yaml in the same project")
    assert "give one of the stacks a project of its own" in warning.text


def test_an_unreadable_stack_does_not_prevent_checks_of_others(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.broken.yaml").write_text("config: {flexspot:platform: {cloud: gke, pools: 3}}", encoding="utf-8")
    (tmp_path / "Pulumi.noyaml.yaml").write_text("config: [", encoding="utf-8")

    assert warnings(write(tmp_path, "dev", shipped("dev-gke"))) == []
