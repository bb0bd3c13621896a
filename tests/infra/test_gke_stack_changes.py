"""Effects of changes to the shipped GKE production stack on deployed resources, by the real engine with state."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from engine_steps import steps
from program_declarations import declared, shipped
from recording_provider import CLIENT_KEY, Call, RecordingProvider

from flexspot.infra.declaring.program import main
from flexspot.infra.deployment.api_refusals import ApiRefusals
from flexspot.infra.deployment.engine import StackRun
from flexspot.infra.deployment.losses import Losses, summary_lines
from flexspot.lab.engine import PLUGINS
from flexspot.lab.providers.serving import serve
from flexspot.lab.providers.values import is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from flexspot.lab.tools.build import Tools

    Settings = dict[str, Any]

pytestmark = pytest.mark.engine

STACK = "prod-gke"


def ignore(_line: str) -> None:
    """Discard a line of output."""


def named(urn: str) -> str:
    """Return a resource's name in these tests: the last word of its type, and its name."""
    _, _, kind, name = urn.split("::", 3)
    return f"{kind.rpartition(':')[2]}/{name}"


@dataclass(frozen=True)
class Changes:
    """The result of one `up`."""

    counts: Mapping[str, int]
    calls: tuple[Call, ...]
    created: set[str]
    updated: set[str]
    """Resources and components with changed inputs that were not replaced."""
    deleted: set[str]
    replaced: set[str]

    def order(self, operation: str, name: str) -> int:
        """Return the position of a call among all calls."""
        return [(call.operation, named(call.urn)) for call in self.calls].index((operation, name))


@dataclass(frozen=True)
class Deployment:
    """The stack in a separate backend."""

    folder: Path
    engine_root: Path | None
    environment: dict[str, str]
    calls: list[Call]
    """Calls that the providers record."""

    def run(self, settings: Settings) -> StackRun:
        def program() -> None:
            pulumi.runtime.set_config("flexspot:platform", json.dumps(settings))
            main()

        backend = f"file://{self.folder / 'state'}"
        return StackRun(STACK, self.folder / "project", backend, self.engine_root, self.environment, program)

    def up(self, settings: Settings) -> Changes:
        """Deploy as the command line does, with a refresh first."""
        before = self.resources()
        self.calls.clear()
        counts = self.run(settings).up(ignore, refresh=True)
        after = self.resources()
        calls = tuple(self.calls)
        replaced = {call.urn for call in calls if call.operation == "create" and call.urn in before}
        kept = (before.keys() & after.keys()) - replaced
        updated = {urn for urn in kept if before[urn]["inputs"] != after[urn]["inputs"]}
        # The engine, the provider and the state agree, so no change was missed by any of them.
        assert {call.urn for call in calls if call.operation == "update"} == {urn for urn in updated if after[urn]["custom"]}
        assert {call.urn for call in calls if call.operation == "delete"} - replaced <= before.keys() - after.keys()
        assert counts.get("same", 0) == len(kept - updated)
        assert counts.get("update", 0) == len(updated)
        assert counts.get("delete", 0) == len(before.keys() - after.keys())
        assert counts.get("create", 0) == len(after.keys() - before.keys())
        return Changes(
            counts,
            calls,
            created={named(urn) for urn in after.keys() - before.keys()},
            updated={named(urn) for urn in updated},
            deleted={named(urn) for urn in before.keys() - after.keys()},
            replaced={named(urn) for urn in replaced},
        )

    def resources(self) -> dict[str, dict[str, Any]]:
        """Return the state's resources and components by URN, without the engine's own default provider."""
        if not self.state.exists():
            return {}
        found = json.loads(self.state.read_text())["checkpoint"]["latest"].get("resources", [])
        return {each["urn"]: {"inputs": {}, **each} for each in found if "::default_" not in each["urn"]}

    @property
    def state(self) -> Path:
        return self.folder / "state" / ".pulumi" / "stacks" / "flexspot" / f"{STACK}.json"


@dataclass(frozen=True)
class First:
    """The shipped stack after its first deployment. Each test changes a copy."""

    deployment: Deployment
    changes: Changes


@pytest.fixture(scope="module")
def first(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[First]:
    calls: list[Call] = []
    folder = tmp_path_factory.mktemp(STACK)
    (folder / "state").mkdir()
    with ExitStack() as served:
        providers = {name: RecordingProvider(name, PLUGINS[name], calls) for name in ("gcp", "kubernetes")}
        environment = {
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_DEBUG_PROVIDERS": ",".join(f"{name}:{served.enter_context(serve(each))}" for name, each in providers.items()),
        }
        root = None if shutil.which("pulumi") else tools.links
        deployment = Deployment(folder, root, environment, calls)
        yield First(deployment, deployment.up(shipped(STACK)))


@pytest.fixture
def deployed(first: First, tmp_path: Path) -> Deployment:
    """Return a copy of the deployed stack."""
    original = first.deployment
    shutil.copytree(original.folder / "state", tmp_path / "state")
    return Deployment(tmp_path, original.engine_root, original.environment, original.calls)


def without_a100s() -> Settings:
    """Return the settings without the pool of A100s, the teams' shares of it, and quotas that only it needs."""
    settings = shipped(STACK)
    settings["pools"] = [each for each in settings["pools"] if each["name"] != "a100-flex"]
    for owner in (*settings["teams"], *settings["cohorts"]):
        for of_pools in ("shares", "borrowing_limits", "lending_limits"):
            owner.get(of_pools, {}).pop("a100-flex", None)
    settings["gpu_quotas"].pop("nvidia-tesla-a100")
    settings["cluster"]["former_accelerators"] = ["nvidia-tesla-a100"]
    return settings


def reordered(value: Any) -> Any:
    """Return the same settings with every list and mapping reversed."""
    if is_object(value):
        return {key: reordered(value[key]) for key in reversed(list(value))}
    return [reordered(each) for each in reversed(value)] if is_list(value) else value


TEAMS = [team["name"] for team in shipped(STACK)["teams"]]
VIEWS = {f"ConfigMap/{team}-platform" for team in TEAMS} | {f"Team/{team}" for team in TEAMS}
"""Each team's view of the platform, which changes with any change of the platform, and its component."""


def modelled(settings: Settings) -> set[tuple[str, str]]:
    """Return an edit's effects by the model of the engine. tests/cloud/test_stack_changes.py judges every setting by that model."""
    run = steps(*(declared(STACK, each, there=True) for each in (shipped(STACK), settings)))
    return {(step.operation.value, f"{step.kind.rpartition(':')[2]}/{step.name.partition(' ')[2]}") for step in run.steps}


def test_the_first_up_creates_each_resource_once_after_its_dependencies(first: First) -> None:
    changes = first.changes

    assert set(changes.counts) == {"create"}
    assert {call.operation for call in changes.calls} == {"create"}
    assert len({call.urn for call in changes.calls}) == len(changes.calls)
    kinds = [name.partition("/")[0] for name in changes.created]
    counted = {kind: kinds.count(kind) for kind in ("NodePool", "Release", "ResourceFlavor", "ClusterQueue", "Bucket")}
    assert counted == {"NodePool": 7, "Release": 1, "ResourceFlavor": 5, "ClusterQueue": 8, "Bucket": 2}
    system = changes.order("create", "NodePool/cluster-system-pool")
    pools = [each for each in changes.created if each.startswith("NodePool/") and "system" not in each]
    assert all(system < changes.order("create", pool) for pool in pools)
    kueue = changes.order("create", "Release/kueue-release")
    assert system < kueue
    assert all(kueue < changes.order("create", each) for each in changes.created if each.startswith("ResourceFlavor/"))


def test_a_second_up_with_reordered_settings_changes_nothing(first: First, deployed: Deployment) -> None:
    settings = shipped(STACK)
    # A second class makes the order matter. It changes nothing by itself.
    settings["classes"]["interactive"] = {}
    settings = reordered(settings)
    assert [pool["name"] for pool in settings["pools"]] != [pool["name"] for pool in shipped(STACK)["pools"]]

    changes = deployed.up(settings)

    assert changes.calls == ()
    assert dict(changes.counts) == {"same": first.changes.counts["create"]}


def limits_of(deployed: Deployment) -> dict[str, int]:
    [cluster] = [each for urn, each in deployed.resources().items() if named(urn) == "Cluster/cluster-cluster"]
    return {each["resourceType"]: each["maximum"] for each in cluster["inputs"]["clusterAutoscaling"]["resourceLimits"]}


def test_removing_a_pool_deletes_its_resources_and_updates_only_derived_ones(deployed: Deployment) -> None:
    settings = without_a100s()
    previewed = deployed.run(settings).preview(ignore, refresh=True)
    assert limits_of(deployed)["nvidia-tesla-a100"] > 1

    changes = deployed.up(settings)

    # Kueue's controller owns the flavor and the shares of a queued pool.
    assert changes.deleted == {"GkeGpuNodePool/a100-flex", "NodePool/a100-flex-node-pool", "ResourceFlavor/queues-a100-flex"}
    teams = ("nlp", "vision")
    # The namespace says which pools the team's queues lead to.
    made = ("ClusterQueue/queues-{}", "Team/{}", "ResourceQuota/{}-quota", "Namespace/{}-namespace")
    of_teams = {each.format(team) for team in teams for each in made}
    # No queue waits for flex-start any more, so Kueue need not wait for hours.
    derived = {"Queues/queues", "Cohort/queues-acme-cohort", "KueueController/kueue", "Release/kueue-release"}
    # The ceilings of the whole cluster, the API server's facts about its pools, and their cost.
    derived |= {"GkeCluster/cluster", "Cluster/cluster-cluster", "MonthlyCost/monthly-cost"}
    derived |= {"ValidatingAdmissionPolicy/admission-flexspot", "ValidatingAdmissionPolicy/admission-flexspot-guarantee"}
    assert changes.updated == derived | VIEWS | of_teams
    assert (changes.created, changes.replaced) == (set(), set())
    assert previewed == changes.counts
    assert {(call.operation, named(call.urn)) for call in changes.calls} == modelled(settings)
    # The limit of a GPU outlives its last pool, with the smallest value.
    assert limits_of(deployed)["nvidia-tesla-a100"] == 1
    # Kueue keeps a flavor that a queue names, and the engine would wait for it.
    gone = changes.order("delete", "ResourceFlavor/queues-a100-flex")
    users = [each for each in changes.updated if each.startswith(("ClusterQueue/", "Cohort/"))]
    assert all(changes.order("update", each) < gone for each in users)


def test_a_preview_reports_a_limit_removed_with_the_last_pool_of_its_gpu(deployed: Deployment) -> None:
    settings, heard = without_a100s(), ApiRefusals()
    del settings["cluster"]["former_accelerators"]
    said: list[Any] = []

    def hear(event: Any) -> None:
        heard.hear(event)
        said.extend([event.diagnostic_event] if event.diagnostic_event else [])

    deployed.run(settings).preview(ignore, hear=hear, refresh=True)

    assert [(each.rule, each.certain) for each in heard.found] == [("gpu-limit-removed", False)]
    # The program reports it to the engine itself, so that a plain `pulumi preview` shows it as well.
    assert any("gpu-limit-removed" in each.message for each in said)
    # Five debug messages per resource would keep the program waiting.
    assert "debug" not in {each.severity for each in said}


def test_a_preview_names_the_settings_that_replace_a_pool(deployed: Deployment) -> None:
    settings = shipped(STACK)
    pools = {each["name"]: each for each in settings["pools"]}
    pools["l4-on-demand"] |= {"gpu_driver": "latest", "secondary_boot_disk_images": ["projects/acme-ai-prod/global/images/weights"]}
    pools["h100-reserved"] |= {"compact_placement": True, "boot_disk_gib": 300}
    heard = Losses()

    deployed.run(settings).preview(ignore, hear=heard.hear, refresh=True)

    anew = "is deleted and created again, with its nodes and what runs on them, because"
    assert summary_lines(heard.found) == [
        f"pool h100-reserved {anew} compact_placement changes",
        f"pool l4-on-demand {anew} gpu_driver, secondary_boot_disk_images change",
    ]


def test_outputs_of_the_deployed_stack_are_known_and_contain_no_secret(deployed: Deployment) -> None:
    outputs = deployed.run(shipped(STACK)).outputs()

    assert outputs["credentials_command"] == (
        "gcloud container clusters get-credentials prod --location us-central1 --project acme-ai-prod --dns-endpoint"
    )
    assert outputs["checkpoints"]["nlp"] == "gs://acme-ai-prod-prod-checkpoints/nlp/"
    assert outputs["queues"] == dict.fromkeys(("ads", "nlp", "search", "vision"), "default")
    resources = {named(urn): each for urn, each in deployed.resources().items()}
    kubeconfig = resources["GkeCluster/cluster"]["outputs"]["kubeconfig"]
    assert resources["kubernetes/cluster"]["inputs"]["kubeconfig"] == kubeconfig
    written = json.loads(kubeconfig)
    # The DNS name has a certificate of a public authority.
    assert written["clusters"][0]["cluster"] == {"server": "https://gke-prod.us-central1.gke.goog"}
    assert set(written["users"][0]["user"]) == {"exec"}
    assert CLIENT_KEY not in deployed.state.read_text()
