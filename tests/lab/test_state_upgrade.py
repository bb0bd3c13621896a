"""State that an earlier Flexspot has written still works: nothing is lost, what is made anew is named, and it can be destroyed.

states/local-85bbd01.json.gz holds the local stack as the program and the stand-in of commit 85bbd01 deployed it: the exported state, and
the objects as they were on the API server. That program declared each team's service account `default`, which Kubernetes makes by itself;
its stand-in kept no `__inputs`, and created by server-side apply. Another state is made as that one was: `flexspot up -s local` at the
commit, then `pulumi stack export`, without source positions and with <kubeconfig> in the place of the lab's path.
"""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from checkout_fixtures import CHECKOUT
from pulumi import automation

from infra.engine import StackRun
from infra.program import KUBECONFIG_VARIABLE
from lab.cluster import Cluster
from lab.engine import engine_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lab.cluster import KubeObject
    from lab.control_plane import ControlPlane
    from lab.tools.build import Tools

pytestmark = [
    pytest.mark.lab,
    pytest.mark.engine,
    pytest.mark.nightly(
        held_by="test_state_of_before_the_stand_in_kept_inputs_is_no_difference, test_every_recorded_call_is_answered_as_recorded"
    ),
]

STATES = Path(__file__).parent / "states"
BEFORE = STATES / "local-85bbd01.json.gz"

ACCOUNT = "v1/ServiceAccount"

# What the program of that commit declared and that of today leaves to Kubernetes.
LEFT_OUT = {("team-alpha", "default"), ("team-beta", "default")}

# The four policies of the guarantee with their bindings, of two teams the binding of `submit` and the right to read their queues; and for
# work without GPUs a pool with its component, a flavor, and of each team both queues; and what each team reads of the platform.
CREATED = 8 + 2 * 4 + 7

MADE_ANEW = {("scheduling.k8s.io/v1/PriorityClass", "", name) for name in ("gpu-training", "gpu-development")}

# The provider and seven components, whose inputs have changed; three policies, and of each team a quota, two roles, limits of containers
# and the queue of its GPUs; a pool.
UPDATED = 21

STACK = "local"


class LabWithManagers(Cluster):
    """The lab's API server, asked as any field manager."""

    def apply_as(self, manager: str, each: KubeObject) -> None:
        """Server-side apply."""
        metadata = each["metadata"]
        self._resource(kind_of(each)).server_side_apply(
            body=each, name=metadata["name"], namespace=metadata.get("namespace"), field_manager=manager
        )


@dataclass(frozen=True)
class Before:
    """What there was before the upgrade: the engine's state, and the objects as they were on the API server."""

    deployment: dict[str, Any]
    objects: list[KubeObject]

    @property
    def resources(self) -> list[dict[str, Any]]:
        return self.deployment["resources"]

    @property
    def of_kubernetes(self) -> list[dict[str, Any]]:
        return [each for each in self.resources if each["type"].startswith("kubernetes:") and each["custom"]]


@dataclass(frozen=True)
class Upgrade:
    """The stack of the earlier state, on a lab that has its objects, to be run by the program of today."""

    run: StackRun
    on_lab: LabWithManagers
    before: Before
    folder: Path

    def state(self) -> list[dict[str, Any]]:
        """The resources that the state holds now."""
        deployment = stack_in(self.folder, self.run).export_stack().deployment or {}
        return [*(deployment.get("resources") or [])]

    def live(self) -> dict[tuple[str, str, str], KubeObject]:
        """Of the objects that there were, those that there are, by kind, namespace and name."""
        found: dict[tuple[str, str, str], KubeObject] = {}
        for each in self.before.objects:
            metadata = each["metadata"]
            now = self.on_lab.get(kind_of(each), metadata["name"], metadata.get("namespace"))
            if now is not None:
                found[key_of(each)] = now
        return found


def kind_of(each: KubeObject) -> str:
    return f"{each['apiVersion']}/{each['kind']}"


def key_of(each: KubeObject) -> tuple[str, str, str]:
    return kind_of(each), each["metadata"].get("namespace", ""), each["metadata"]["name"]


def ignore(_line: str) -> None:
    """Output that no test looks at."""


def changed(counts: Mapping[str, int]) -> dict[str, int]:
    return {kind: count for kind, count in counts.items() if kind != "same"}


def read_before(kubeconfig: Path) -> Before:
    """The earlier stack, as if it had been deployed to the lab of `kubeconfig`."""
    content = json.loads(gzip.decompress(BEFORE.read_bytes()).decode().replace("<kubeconfig>", str(kubeconfig)))
    return Before(content["state"]["deployment"], content["objects"])


def stack_in(folder: Path, run: StackRun) -> automation.Stack:
    """The stack of a run, to export and import its state."""
    environment = {**run.environment, "PULUMI_BACKEND_URL": str(run.backend_url), "PULUMI_CONFIG_PASSPHRASE": ""}
    options = automation.LocalWorkspaceOptions(
        work_dir=str(folder),
        env_vars=environment,
        pulumi_command=automation.PulumiCommand(root=str(run.engine_root)) if run.engine_root else None,
    )
    return automation.create_or_select_stack(STACK, work_dir=str(folder), opts=options)


def project_in(folder: Path) -> Path:
    """A folder with the project and its stack file, as the engine wants them."""
    folder.mkdir(parents=True)
    project = yaml.safe_load((CHECKOUT / "Pulumi.yaml").read_text())
    project.pop("stackConfigDir")
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project))
    shutil.copyfile(CHECKOUT / "stacks" / f"Pulumi.{STACK}.yaml", folder / f"Pulumi.{STACK}.yaml")
    return folder


@pytest.fixture
def upgrade(stack_lab: ControlPlane, tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upgrade]:
    """The earlier stack on a lab; what is left of it afterwards is destroyed."""
    kubeconfig = stack_lab.home.kubeconfig
    monkeypatch.setenv(KUBECONFIG_VARIABLE, str(kubeconfig))
    before = read_before(kubeconfig)
    on_lab = LabWithManagers(kubeconfig)
    for each in before.of_kubernetes:
        # As the earlier stand-in made it, and under the manager that the state names.
        on_lab.apply_as(each["outputs"]["__fieldManager"], each["inputs"])
    (tmp_path / "state").mkdir()
    with engine_for(kubeconfig, tools) as engine:
        run = StackRun(STACK, tmp_path / "project", f"file://{tmp_path / 'state'}", engine.root, engine.environment)
        folder = project_in(tmp_path / "import")
        stack_in(folder, run).import_stack(automation.Deployment(version=3, deployment=before.deployment))
        yield Upgrade(run, on_lab, before, folder)
        run.destroy(ignore)


def owners(each: KubeObject) -> dict[str, Any]:
    """The fields that Pulumi's managers of an object have, by manager and operation."""
    entries = [entry for entry in each["metadata"]["managedFields"] if entry["manager"].startswith("pulumi-kubernetes")]
    return {f"{entry['manager']} {entry['operation']}": entry["fieldsV1"] for entry in entries}


def assert_put_back(upgrade: Upgrade) -> None:
    """That the lab has what the recorded one had, with the same fields under the same managers, and that the state is the old kind."""
    now = upgrade.live()
    assert len(now) == len(upgrade.before.objects) == 43
    assert {key: owners(each) for key, each in now.items()} == {key_of(each): owners(each) for each in upgrade.before.objects}
    assert len(upgrade.before.resources) == 54
    assert [each["urn"] for each in upgrade.before.of_kubernetes if "__inputs" in each["outputs"]] == []


def test_a_stack_of_before_is_upgraded_in_place_and_destroyed(upgrade: Upgrade) -> None:
    assert_put_back(upgrade)
    run, first = upgrade.run, upgrade.live()

    # Policies and rights that there were not; PriorityClasses of queued work, which preempts nothing any more and whose policy the API
    # server does not change; two objects that the program no longer declares.
    expected = {"create": CREATED, "replace": len(MADE_ANEW), "update": UPDATED, "delete": len(LEFT_OUT)}
    assert changed(run.preview(ignore)) == expected
    assert changed(run.up(ignore)) == expected

    now = upgrade.live()
    assert now.keys() == first.keys()
    assert {key for key, each in now.items() if each["metadata"]["uid"] != first[key]["metadata"]["uid"]} == MADE_ANEW
    # They left the state, and stay on the cluster as they were: Kubernetes needs them.
    for namespace, name in LEFT_OUT:
        assert now[ACCOUNT, namespace, name]["automountServiceAccountToken"] is False
    accounts = {each["id"] for each in upgrade.state() if each["type"] == "kubernetes:core/v1:ServiceAccount"}
    assert accounts == {"team-alpha/workloads", "team-beta/workloads"}

    assert changed(run.up(ignore)) == {}

    run.destroy(ignore)
    assert upgrade.live() == {}
    assert upgrade.state() == []
