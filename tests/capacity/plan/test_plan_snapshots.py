"""The plan of each shipped stack is the reviewed one, and a change of the catalog shows where it matters."""

from __future__ import annotations

from pathlib import Path

import pytest
from snapshot_fixtures import REWRITE, assert_snapshot, snapshot_difference

from capacity.catalog.machines import Cloud, Machine, machines_of
from capacity.plan import resolve
from capacity.plan.build import build_plan
from capacity.plan.model import plan_yaml
from capacity.settings.stack_file import read_stack_file

STACKS = Path(__file__).resolve().parents[3] / "stacks"
SNAPSHOTS = Path(__file__).resolve().parents[1] / "snapshots"


def plan_text(stack: str) -> str:
    return plan_yaml(build_plan(read_stack_file(STACKS / f"Pulumi.{stack}.yaml")))


@pytest.mark.parametrize("stack", ["local", "dev-gke", "prod-gke", "dev-eks", "prod-eks"])
def test_the_plan_of_a_shipped_stack_is_its_snapshot(stack: str) -> None:
    assert_snapshot(plan_text(stack), SNAPSHOTS / f"{stack}.plan.yaml")


def test_every_shipped_stack_has_a_snapshot_and_no_other_does() -> None:
    stacks = {path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in STACKS.glob("Pulumi.*.yaml")}

    assert {path.name.removesuffix(".plan.yaml") for path in SNAPSHOTS.iterdir()} == stacks


def test_a_changed_catalog_row_shows_as_changed_pools_flavors_and_quotas(monkeypatch: pytest.MonkeyPatch) -> None:
    def catalog(cloud: Cloud) -> dict[str, Machine]:
        machines = machines_of(cloud)
        return {**machines, "g6.xlarge": machines["g6.xlarge"].model_copy(update={"memory_mib": 20480})}

    before = plan_text("local")
    monkeypatch.setattr(resolve, "machines_of", catalog)

    lines = snapshot_difference(before, plan_text("local"), "local.plan.yaml")

    assert [line.partition("@@ ")[2].partition("@@ ")[2] for line in lines if line.startswith("@@")] == [
        "pools, name: l4-on-demand",
        "pools, name: l4-spot",
        "flavors, name: l4-spot",
        "queues, cluster_queue: team-alpha",
        "queues, cluster_queue: team-beta",
    ]
    changed = [line.replace(" ", "") for line in lines[2:] if line.startswith(("+", "-"))]
    assert changed[:4] == ["-memory_mib:32768", "+memory_mib:40960", "-memory_mib:65536", "+memory_mib:81920"]
    assert len(changed) == 2 * 5, "nothing else of the plan changes: what a container may have is of the larger nodes without GPUs"


def test_a_difference_fails_with_the_lines_and_the_way_to_rewrite(tmp_path: Path) -> None:
    path = tmp_path / "some.yaml"
    path.write_text("pools:\n- name: red\n  max_nodes: 1\n")

    with pytest.raises(pytest.fail.Exception, match=f"{REWRITE}=1") as failed:
        assert_snapshot("pools:\n- name: red\n  max_nodes: 2\n", path)

    assert "@@ -1,3 +1,3 @@ pools, name: red" in str(failed.value)
    assert "-  max_nodes: 1\n+  max_nodes: 2" in str(failed.value)


def test_a_snapshot_that_is_not_there_is_written_only_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "some.yaml"

    with pytest.raises(pytest.fail.Exception, match=r"there is no some\.yaml"):
        assert_snapshot("a: 1\n", path)
    monkeypatch.setenv(REWRITE, "1")
    assert_snapshot("a: 1\n", path)
    monkeypatch.delenv(REWRITE)
    assert_snapshot("a: 1\n", path)

    assert path.read_text() == "a: 1\n"
