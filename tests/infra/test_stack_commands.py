"""`flexspot up`, `preview` and `destroy` on the command line, in a separate checkout."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import psutil
import pytest
from checkout_fixtures import LOCAL_RESOURCES

from flexspot.infra.deployment.prerequisites import PLUGINS

if TYPE_CHECKING:
    from pathlib import Path

    from checkout_fixtures import OwnCheckout

pytestmark = pytest.mark.slow

ASKING = {"up": ["--yes"], "destroy": ["--yes"]}


@pytest.mark.parametrize("command", ["up", "preview", "outputs", "destroy"])
def test_an_unknown_stack_is_bad_usage_and_existing_ones_are_listed(command: str, checkout: OwnCheckout) -> None:
    refused = checkout.flexspot(command, "-s", "locall", *ASKING.get(command, []))

    assert refused.returncode == 2
    assert "--stack: there is no stack locall." in refused.stderr
    assert "did you mean local? allowed: dev-eks, dev-gke, local, prod-eks, prod-gke" in refused.stderr


@pytest.mark.parametrize(
    "command,cloud,provider", [("up", "gke", "gcp"), ("preview", "eks", "aws"), ("outputs", "gke", "gcp"), ("destroy", "eks", "aws")]
)
def test_a_cloud_stack_without_the_official_plugins_opens_no_state(
    command: str, cloud: str, provider: str, checkout: OwnCheckout, tmp_path: Path
) -> None:
    backend = tmp_path / "backend"
    backend.mkdir()
    place = {"PULUMI_BACKEND_URL": f"file://{backend}", "PULUMI_HOME": str(tmp_path / "home")}

    refused = checkout.flexspot(command, "-s", f"prod-{cloud}", *ASKING.get(command, []), **place)

    assert refused.returncode == 2
    assert f"resource plugin {provider} {PLUGINS[provider]} is neither on PATH nor in {tmp_path / 'home' / 'plugins'}" in refused.stderr
    assert f"pulumi plugin install resource {provider} {PLUGINS[provider]}" in refused.stderr
    assert "No state was opened." in refused.stderr
    assert list(backend.iterdir()) == []
    assert not (checkout.folder / ".lab").exists()


@pytest.mark.parametrize("command,stack", [("up", "local"), ("destroy", "prod-gke")])
def test_without_a_terminal_and_without_yes_nothing_starts(command: str, stack: str, checkout: OwnCheckout) -> None:
    refused = checkout.flexspot(command, "-s", stack)

    assert refused.returncode == 2
    assert f"`flexspot {command}` asks for confirmation, but there is no terminal to answer at." in refused.stderr
    assert f"flexspot {command} --yes" in refused.stderr
    assert not (checkout.folder / ".lab").exists()


def test_the_id_of_a_created_resource_must_be_valid(checkout: OwnCheckout) -> None:
    refused = checkout.flexspot("up", "-s", "local", "--yes", "--made", "urn:pulumi:local::flexspot::a:b:C::d")

    assert refused.returncode == 2
    assert "has no id." in refused.stderr
    assert "--made URN=ID" in refused.stderr


@pytest.mark.parametrize(
    "options,remedy",
    [
        (("--offline", "--refresh"), "remove one of them"),
        (("--write-state",), "add --refresh"),
        (("--not-made", "urn"), "add --refresh --write-state"),
    ],
)
def test_options_of_a_preview_that_exclude_each_other_are_bad_usage(options: tuple[str, ...], remedy: str, checkout: OwnCheckout) -> None:
    refused = checkout.flexspot("preview", "-s", "local", *options)

    assert refused.returncode == 2
    assert remedy in refused.stderr


@pytest.mark.parametrize("command", [("up", "-s", "local", "--yes"), ("lab", "pulumi", "preview", "-s", "local")], ids=["up", "lab pulumi"])
def test_a_lab_that_was_never_started_is_named_before_any_tool_is_built(checkout: OwnCheckout, command: tuple[str, ...]) -> None:
    refused = checkout.flexspot(*command)

    assert refused.returncode == 1
    assert "there is no lab default" in refused.stderr
    assert "flexspot lab start --lab default" in refused.stderr
    assert not list((checkout.folder / ".tools").iterdir())


@pytest.mark.engine
def test_an_offline_preview_needs_no_lab_and_keeps_no_state(checkout: OwnCheckout) -> None:
    shown = checkout.flexspot("preview", "-s", "local", "--offline")

    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "offline: providers echo their inputs" in shown.stdout
    assert shown.stdout.endswith(f"{LOCAL_RESOURCES} would be created\n")
    assert not (checkout.folder / ".lab").exists()


@pytest.mark.lab
@pytest.mark.engine
@pytest.mark.nightly(tested_by="test_the_holder_of_a_lock_is_another_run_and_a_stale_lock_is_removed")
def test_a_second_up_at_the_same_time_names_the_first_and_changes_nothing(checkout_with_lab: OwnCheckout) -> None:
    checkout = checkout_with_lab
    with subprocess.Popen(
        checkout.command("up", "-s", "local", "--yes"), cwd=checkout.folder, env=checkout.environment, stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout is not None
        for line in first.stdout:
            if "PriorityClass" in line and "creating" in line:
                break
        processes = [psutil.Process(first.pid), *psutil.Process(first.pid).children(recursive=True)]
        for process in processes:
            process.suspend()

        refused = checkout.flexspot("up", "-s", "local", "--yes")

        for process in processes:
            process.resume()
        first.stdout.read()

    assert refused.returncode == 1
    assert "stack local is being changed by another run (process " in refused.stderr
    assert "wait until it has ended" in refused.stderr
    assert first.returncode == 0, "the first run was not disturbed"
    assert checkout.flexspot("preview", "-s", "local").stdout.endswith("no change.\n")
