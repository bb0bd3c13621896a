"""The local stack from the command line: up and down, after an interruption, a manual change, or a loss in the state."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from checkout_fixtures import CHECKOUT, LOCAL_RESOURCES

if TYPE_CHECKING:
    from checkout_fixtures import OwnCheckout

pytestmark = [pytest.mark.lab, pytest.mark.engine]


def cut_off(checkout: OwnCheckout, command: str, signal_name: str, seen: str) -> None:
    """Run a command of the stack, and end it when the run that changes something prints a line with `seen`."""
    with subprocess.Popen(
        checkout.command(command, "-s", "local", "--yes"),
        cwd=checkout.folder,
        env=checkout.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as cut:
        assert cut.stdout is not None
        deadline = time.monotonic() + 120
        for line in cut.stdout:
            assert time.monotonic() < deadline
            if "PriorityClass" in line and seen in line:
                break
        cut.send_signal(getattr(signal, signal_name))
        cut.stdout.read()
        cut.wait(60)


@pytest.mark.parametrize(
    "signal_name",
    [
        "SIGKILL",
        pytest.param("SIGTERM", marks=pytest.mark.nightly(tested_by="test_an_interrupted_run_is_finished_by_the_next")),
    ],
)
def test_an_interrupted_run_is_finished_by_the_next(signal_name: str, checkout_with_lab: OwnCheckout) -> None:
    """Interrupts at one moment. tests/cloud/test_interruptions.py tests others, and interruptions by a key."""
    checkout = checkout_with_lab
    before = objects(checkout)
    cut_off(checkout, "up", signal_name, "created")

    finished = checkout.flexspot("up", "-s", "local", "--yes")

    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert checkout.flexspot("preview", "-s", "local").stdout.endswith("no change.\n")
    pools = {f"nodepool.karpenter.sh/{name}" for name in ("l4-on-demand", "l4-spot", "other-work")}
    assert {each for each in objects(checkout) - before if each.startswith("nodepool.")} == pools, "nothing is doubled"

    cut_off(checkout, "destroy", signal_name, "deleting")
    removed = checkout.flexspot("destroy", "-s", "local", "--yes")

    assert removed.returncode == 0, removed.stdout + removed.stderr
    assert objects(checkout) <= before


def test_the_local_stack_goes_up_reverts_manual_changes_and_goes_down(checkout_with_lab: OwnCheckout) -> None:
    checkout = checkout_with_lab
    before = objects(checkout)
    deployed = checkout.flexspot("up", "-s", "local", "--yes")
    assert deployed.returncode == 0, deployed.stdout + deployed.stderr
    assert f"{LOCAL_RESOURCES} would be created" in deployed.stdout, "what it does is shown before it does it"
    assert f"{LOCAL_RESOURCES} were created" in deployed.stdout
    assert f"{LOCAL_RESOURCES} were created" in (CHECKOUT / "README.md").read_text(encoding="utf-8"), "the README shows what came"
    if shutil.which("pulumi") is None:
        assert "the lab uses its own replacements" in deployed.stdout, "one line names what is replaced"

    limit = ("get", "nodepool", "l4-spot", "-o", "jsonpath={.spec.limits.nvidia\\.com/gpu}")
    raised = ("patch", "nodepool", "l4-spot", "--type", "merge", "-p", '{"spec":{"limits":{"nvidia.com/gpu":"400"}}}')
    checkout.kubectl(*raised)

    assert checkout.flexspot("preview", "-s", "local").stdout.endswith("no change.\n"), "without a look nothing is seen"
    shown = checkout.flexspot("preview", "-s", "local", "--refresh")
    assert shown.returncode == 1
    assert "1 would be updated" in shown.stdout
    ceiling = 'spec.limits["nvidia.com/gpu"]'
    [line] = [line for line in shown.stdout.splitlines() if ceiling in line]
    assert line.split("│")[1:5] == [each.join("  ") for each in ("NodePool l4-spot-node-pool", ceiling, "4       ", "400  ")]
    looked = checkout.flexspot("preview", "-s", "local", "--refresh", "--write-state")
    assert looked.returncode == 1
    assert ceiling in looked.stdout
    assert checkout.kubectl(*limit) == "400", "a look changes nothing"

    # Another field manager uses server-side apply. Neither its conflict nor its name keeps the ceiling raised.
    pool = json.loads(checkout.kubectl("get", "nodepool", "l4-spot", "-o", "json"))
    pool["metadata"] = {"name": "l4-spot"}
    pool["spec"]["limits"]["nvidia.com/gpu"] = "800"
    pool.pop("status")
    checkout.kubectl("apply", "--server-side", "--force-conflicts", "--field-manager", "other-manager", "-f", "-", given=json.dumps(pool))
    back = checkout.flexspot("up", "-s", "local", "--yes")
    assert back.returncode == 0, back.stdout + back.stderr
    assert checkout.kubectl(*limit) == "4"
    assert checkout.flexspot("preview", "-s", "local", "--refresh").returncode == 0

    # Without a refresh, `up` leaves unknown changes.
    checkout.kubectl(*raised)
    assert checkout.flexspot("up", "-s", "local", "--yes", "--no-refresh").returncode == 0
    assert checkout.kubectl(*limit) == "400"

    # The plain command line uses the same state and the same program.
    plain = checkout.flexspot("lab", "pulumi", "up", "-s", "local", "--yes", "--non-interactive", "--policy-pack", "policies/pack")
    assert plain.returncode == 0, plain.stdout + plain.stderr
    assert f"{LOCAL_RESOURCES} unchanged" in plain.stdout

    removed = checkout.flexspot("destroy", "-s", "local", "--yes")
    assert removed.returncode == 0, removed.stdout + removed.stderr
    assert f"{LOCAL_RESOURCES} would be deleted" in removed.stdout
    assert f"{LOCAL_RESOURCES} were deleted" in removed.stdout
    assert objects(checkout) <= before


@pytest.mark.nightly(
    tested_by="test_lost_resources_are_added_once_and_can_be_removed, test_an_object_with_the_labels_and_manager_of_the_stack_is_its_own"
)
def test_lost_resources_are_found_again_and_foreign_ones_left_alone(checkout_with_lab: OwnCheckout) -> None:
    checkout = checkout_with_lab
    assert checkout.flexspot("up", "-s", "local", "--yes").returncode == 0
    # An atomic field with a server-side default: a new writer conflicts with the first one.
    state = checkout.folder / ".lab/default/pulumi/.pulumi/stacks/flexspot/local.json"
    resources = json.loads(state.read_text())["checkpoint"]["latest"]["resources"]
    binding = next(each["urn"] for each in resources if each["urn"].endswith("::admission-flexspot-elsewhere"))
    forgotten = checkout.flexspot("lab", "pulumi", "state", "delete", binding, "-s", "local", "--yes")
    assert forgotten.returncode == 0, forgotten.stderr

    found = checkout.flexspot("up", "-s", "local", "--yes")

    assert found.returncode == 0, found.stdout + found.stderr
    assert "looking whether they are this stack's own" in found.stdout
    assert checkout.flexspot("preview", "-s", "local", "--refresh").stdout.endswith("no change.\nnothing was changed by hand.\n")

    assert checkout.flexspot("destroy", "-s", "local", "--yes").returncode == 0
    theirs = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-alpha", "labels": {"whose": "somebody-elses"}}}
    checkout.kubectl("create", "-f", "-", given=json.dumps(theirs))
    refused = checkout.flexspot("up", "-s", "local", "--yes")
    assert refused.returncode == 1
    assert "already exists" in refused.stderr
    assert "Not this stack's own, so left alone: team-alpha-namespace." in refused.stdout
    assert checkout.flexspot("destroy", "-s", "local", "--yes").returncode == 0
    assert "somebody-elses" in checkout.kubectl("get", "namespace", "team-alpha", "-o", "json")
    checkout.kubectl("delete", "namespace", "team-alpha")


KINDS = (
    "namespaces,nodepools,kwoknodeclasses,clusterqueues,cohorts,resourceflavors,workloadpriorityclasses,priorityclasses,"
    "validatingadmissionpolicies,validatingadmissionpolicybindings,mutatingadmissionpolicies,mutatingadmissionpolicybindings,"
    "clusterroles,clusterrolebindings"
)


def objects(checkout: OwnCheckout) -> set[str]:
    """Return the objects without a namespace, of the stack's kinds. Objects in a namespace are deleted with it."""
    return set(checkout.kubectl("get", KINDS, "-o", "name").split())
