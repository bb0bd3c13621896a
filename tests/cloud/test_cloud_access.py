"""Refusals before a cloud stack is deployed: nothing is opened, and the message says what is missing and what to do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from cloud_world import CloudWorld

pytestmark = pytest.mark.engine


def attempt(world: CloudWorld, stack: str, command: str = "up", **environment: str) -> CompletedProcess[str]:
    yes = ["--yes"] if command in {"up", "destroy"} else []
    return world.flexspot(command, "-s", stack, *yes, **environment)


def assert_refused(world: CloudWorld, done: CompletedProcess[str], *parts: str) -> None:
    """Check for exit code 2, a message, and that nothing was written: neither state nor anything in the cloud."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert [each for each in parts if each not in " ".join(done.stderr.split())] == []
    assert "No state was opened." in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert list(world.backend.rglob("*.json")) == []
    assert world.cloud.all() == []


@pytest.mark.parametrize("command", ["up", "preview"])
def test_without_google_credentials_nothing_is_started(command: str, bare_world: CloudWorld) -> None:
    (bare_world.folder / "service-account.json").unlink()
    del bare_world.environment["GOOGLE_APPLICATION_CREDENTIALS"]

    assert_refused(bare_world, attempt(bare_world, "dev-gke", command), "credentials", "gcloud auth application-default login")


def test_without_aws_credentials_nothing_is_started(bare_world: CloudWorld) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        del bare_world.environment[name]

    assert_refused(bare_world, attempt(bare_world, "dev-eks"), "credentials", MOTO_ACCOUNT)


MOTO_ACCOUNT = "123456789012"


def test_credentials_of_another_account_are_refused(bare_world: CloudWorld) -> None:
    bare_world.change("dev-eks", account="999988887777")

    assert_refused(bare_world, attempt(bare_world, "dev-eks"), MOTO_ACCOUNT, "999988887777")


@pytest.mark.parametrize("project,problem", [("acme-ai-other", "acme-ai-other"), ("acme-ai-gone", "DELETE_REQUESTED")])
def test_a_project_that_is_inaccessible_or_inactive_is_refused(project: str, problem: str, bare_world: CloudWorld) -> None:
    bare_world.change("dev-gke", project=project)

    assert_refused(bare_world, attempt(bare_world, "dev-gke"), problem, project)


def test_missing_apis_are_listed_with_the_command_that_enables_them(bare_world: CloudWorld) -> None:
    queued = [{**team, "work_queue": {"name": "shards"}} for team in bare_world.settings("dev-gke")["teams"]]
    bare_world.change("dev-gke", project="acme-ai-empty", teams=queued)

    missing = "containerfilesystem.googleapis.com pubsub.googleapis.com"
    assert_refused(bare_world, attempt(bare_world, "dev-gke"), f"gcloud services enable --project acme-ai-empty {missing}")


def test_without_a_terminal_up_requires_yes(bare_world: CloudWorld) -> None:
    assert_refused(bare_world, bare_world.flexspot("up", "-s", "dev-gke"), "--yes")


def test_a_file_backend_without_a_passphrase_is_refused_before_the_engine_would_ask(bare_world: CloudWorld) -> None:
    del bare_world.environment["PULUMI_CONFIG_PASSPHRASE"]

    assert_refused(bare_world, attempt(bare_world, "dev-gke"), "PULUMI_CONFIG_PASSPHRASE")


def test_the_doctor_checks_the_owner_of_the_credentials_and_the_place_of_the_state(bare_world: CloudWorld) -> None:
    done = bare_world.flexspot("doctor", "--ask", "--for", "eks", "--format", "json")

    assert done.returncode == 0, done.stdout + done.stderr
    [found] = [each for each in json.loads(done.stdout) if each["for"] == "eks"]
    [found_by_doctor] = [each["found"] for each in found["pieces"] if each["piece"] == "credentials of dev-eks"]
    assert MOTO_ACCOUNT in found_by_doctor
    assert f"the state is in file://{bare_world.backend}" in found_by_doctor
    assert list(bare_world.backend.rglob("*.json")) == []
