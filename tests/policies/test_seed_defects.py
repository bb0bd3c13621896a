"""Each defect of the documents that the project began with is found by the right rule at the right line, or no component can hold it."""

from __future__ import annotations

import re
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from flexspot_runtime.interruption import Interrupted, Interruption
from program_declarations import as_shipped, plan_of
from seed_defect_manifests import found, marked
from seed_defect_table import GUIDE, SEED_DEFECTS, SeedDefect, table

from capacity.catalog.capacity_type import CapacityType
from policies.lint.configuration import Configuration
from policies.lint.run import lint

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).resolve().parents[2] / "docs"

STACK = "prod-gke"

TWO_NAMESPACES = re.compile(r"kubectl .*(?:\s(?:-n|--namespace)[ =]\S+.*){2}")


@pytest.mark.parametrize("defect", [each for each in SEED_DEFECTS if each.manifests], ids=str)
def test_the_defect_is_found_by_its_rules_at_their_lines_and_by_no_other(defect: SeedDefect) -> None:
    for path in defect.manifests:
        assert marked(path), path.name
        assert found(path) == marked(path), path.name


def test_every_defect_has_manifests_or_a_test_of_the_component_that_cannot_hold_it() -> None:
    tested = {int(name.split("_")[1].removeprefix("g")) for name in globals() if name.startswith("test_g")}

    assert [each.number for each in SEED_DEFECTS] == list(range(1, 35))
    assert {each.number for each in SEED_DEFECTS if not each.manifests} <= tested
    assert {each.number for each in SEED_DEFECTS if each.component} <= tested


def test_the_guide_has_the_table_that_these_tests_hold() -> None:
    """When this fails: `python tests/policies/seed_defect_table.py`."""
    assert f"\n\n{table()}\n## " in GUIDE.read_text(encoding="utf-8")


@pytest.mark.parametrize("guide", sorted((DOCS / "guides").glob("*.md")), ids=lambda path: path.name)
def test_the_objects_that_a_guide_shows_keep_every_rule_as_all_there_is(guide: Path) -> None:
    report = lint([str(guide)], Configuration(closed=True))

    assert [(each.line, each.finding.rule, each.finding.message) for each in (*report.findings, *report.undecided)] == []
    assert report.objects or guide != GUIDE


def test_g13_the_controller_is_of_the_release_that_its_queues_are_for() -> None:
    [release] = [each for each in as_shipped(STACK).inputs_of("kubernetes:helm.sh/v3:Release") if "kueue" in each["chart"]]

    assert tuple(map(int, release["version"].split("."))) >= (0, 19, 0)
    assert "kube-rbac-proxy" not in str(release)


def commands(folder: Path) -> Iterator[str]:
    """The lines that are to be typed: a table may quote a command that is wrong."""
    for path in sorted(folder.rglob("*.md")):
        yield from (line for line in path.read_text(encoding="utf-8").splitlines() if line.lstrip(" $").startswith("kubectl "))


def test_g22_no_command_of_the_guides_names_two_namespaces() -> None:
    assert TWO_NAMESPACES.search("kubectl get pods -n team-alpha -n team-beta")
    assert [line for line in commands(DOCS) if TWO_NAMESPACES.search(line)] == []


def test_g22_the_highest_priority_is_kept_by_its_capacity_and_its_budget_and_not_by_its_number() -> None:
    plan = plan_of(STACK)
    highest = max(plan.priorities, key=lambda each: each.value)
    [route] = [each for each in plan.routes if each.priority_class == highest.name]

    assert {pool.capacity_type for pool in route.pools} <= {CapacityType.RESERVED, CapacityType.ON_DEMAND}
    assert route.disruption_budget


def test_g23_the_ceiling_of_a_gpu_pool_holds_for_all_zones_together() -> None:
    pools = [each for each in as_shipped(STACK).inputs_of("gcp:container/nodePool:NodePool") if "guestAccelerators" in each["nodeConfig"]]

    assert pools
    assert all("totalMaxNodeCount" in each["autoscaling"] and "maxNodeCount" not in each["autoscaling"] for each in pools)
    assert all(each.get("nodeCount") is None and each["initialNodeCount"] == 0 for each in pools)


def test_g26_capacity_that_comes_all_at_once_is_reached_through_a_provisioning_check_alone() -> None:
    plan, shipped = plan_of(STACK), as_shipped(STACK)
    at_once = {each.name for each in plan.pools if each.capacity_type is CapacityType.QUEUED}
    flavors = {each.name for each in plan.flavors if at_once & set(each.pools)}
    checked = {
        flavor
        for queue in shipped.inputs_of("kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue")
        for check in queue["spec"].get("admissionChecksStrategy", {}).get("admissionChecks", ())
        for flavor in check["onFlavors"]
    }
    [config] = shipped.inputs_of("kubernetes:kueue.x-k8s.io/v1beta2:ProvisioningRequestConfig")

    assert flavors
    assert checked == flavors
    assert config["spec"]["provisioningClassName"] == "queued-provisioning.gke.io"


def test_g32_yaml_without_its_indentation_is_told_of(tmp_path: Path) -> None:
    flattened = "apiVersion: batch/v1\nkind: Job\nmetadata:\nname: sweep\nspec:\ntemplate:\nmetadata:\nname: sweep\nspec:\n"
    (tmp_path / "job.yaml").write_text(flattened)

    report = lint([str(tmp_path)], Configuration())

    assert {each.line for each in report.open if each.finding.rule == "duplicate-key"} == {7, 8, 9}


def test_g33_an_interrupted_run_ends_with_143_and_never_with_0() -> None:
    with pytest.raises(SystemExit) as ended:
        raise Interrupted("SIGTERM", 4200)

    assert ended.value.code == 143


def test_g34_the_warning_is_heard_on_a_thread_that_waits_for_no_step() -> None:
    heard: list[threading.Thread] = []
    with Interruption() as interruption:
        interruption.on_notice(lambda _: heard.append(threading.current_thread()))
        signal.raise_signal(signal.SIGTERM)
        assert interruption.wait(5)

    assert heard
    assert threading.main_thread() not in heard
