"""What a change of the shipped production stack on GKE does to what is deployed, by the real engine with state."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from engine_steps import steps
from gke_deployment_fixtures import STACK, ignore, named, shipped
from program_declarations import declared
from recording_provider import CLIENT_KEY, CLUSTER, NODE_POOL

from infra.deployment.api_refusals import ApiRefusals
from infra.deployment.losses import Losses, told
from lab.providers.values import is_list, is_object

if TYPE_CHECKING:
    from gke_deployment_fixtures import Changes, Deployment, First

    Settings = dict[str, Any]

pytestmark = pytest.mark.engine

IN_PLACE = {
    CLUSTER: {"clusterAutoscaling"},
    NODE_POOL: {"autoscaling"},
    "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue": {"spec"},
    "kubernetes:kueue.x-k8s.io/v1beta2:Cohort": {"spec"},
    "kubernetes:core/v1:ResourceQuota": {"spec"},
    "kubernetes:core/v1:ConfigMap": {"data"},
    # The chart rolls its pods when its configuration changes.
    "kubernetes:helm.sh/v3:Release": {"values"},
    "kubernetes:cloud.google.com/v1:ComputeClass": {"spec"},
    # It knows which nodes are taken away, and after which notice.
    "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy": {"spec"},
}
"""The inputs that a change of a pool's size, or of which pools there are, may touch in what stays."""

LIMITS = {"GkeCluster/cluster", "Cluster/cluster-cluster"}
"""What holds the ceilings of the whole cluster."""

ADMISSION = frozenset({"ValidatingAdmissionPolicy/admission-flexspot", "ValidatingAdmissionPolicy/admission-flexspot-guarantee"})
"""What the API server is told of the pools."""

COST = "MonthlyCost/monthly-cost"
"""What the pools come to."""


def without_a100s() -> Settings:
    """The settings without the pool of A100s, without what teams had of it and without quota that nothing else needs."""
    settings = shipped()
    settings["pools"] = [each for each in settings["pools"] if each["name"] != "a100-flex"]
    for owner in (*settings["teams"], *settings["cohorts"]):
        for of_pools in ("shares", "borrowing_limits", "lending_limits"):
            owner.get(of_pools, {}).pop("a100-flex", None)
    settings["gpu_quotas"].pop("nvidia-tesla-a100")
    settings["cluster"]["former_accelerators"] = ["nvidia-tesla-a100"]
    return settings


def with_more_nodes() -> Settings:
    """The settings with another ceiling of the pool of A100s, and quota for it."""
    settings = shipped()
    [pool] = [each for each in settings["pools"] if each["name"] == "a100-flex"]
    pool["max_nodes"] = 7
    settings["gpu_quotas"]["nvidia-tesla-a100"]["preemptible"] = 40
    return settings


def reordered(value: Any) -> Any:
    """The same settings with every list and every mapping the other way round."""
    if is_object(value):
        return {key: reordered(value[key]) for key in reversed(list(value))}
    return [reordered(each) for each in reversed(value)] if is_list(value) else value


VIEWS = {f"ConfigMap/{team['name']}-platform" for team in shipped()["teams"]} | {f"Team/{team['name']}" for team in shipped()["teams"]}
"""What each team reads of the platform, which changes whenever the platform does, and its component."""


def assert_in_place(changes: Changes) -> None:
    """Nothing was made anew, and in what stays only ceilings and quotas changed."""
    assert changes.replaced == set()
    assert set(changes.counts) <= {"same", "update", "delete"}
    updates = [call for call in changes.calls if call.operation == "update"]
    assert [(named(call.urn), call.changed) for call in updates if not call.keys <= IN_PLACE.get(call.kind, set())] == []
    of_cluster = [path for call in updates if call.kind == CLUSTER for path in call.changed]
    assert [path for path in of_cluster if not path.startswith("clusterAutoscaling.resourceLimits[")] == []


def modelled(settings: Settings) -> set[tuple[str, str]]:
    """What the model of the engine says that an edit does, by which tests/cloud/test_stack_changes.py judges every setting."""
    run = steps(*(declared(STACK, each, there=True) for each in (shipped(), settings)))
    return {(step.operation.value, f"{step.kind.rpartition(':')[2]}/{step.name.partition(' ')[2]}") for step in run.steps}


def test_the_first_up_creates_each_resource_once_and_what_others_stand_on_before_them(first: First) -> None:
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


def test_a_second_up_with_pools_teams_cohorts_classes_zones_and_shares_in_another_order_changes_nothing(
    first: First, deployed: Deployment
) -> None:
    settings = shipped()
    # Two, so that there is an order; the second changes nothing by itself.
    settings["classes"]["interactive"] = {}
    settings = reordered(settings)
    assert [pool["name"] for pool in settings["pools"]] != [pool["name"] for pool in shipped()["pools"]]

    changes = deployed.up(settings)

    assert changes.calls == ()
    assert dict(changes.counts) == {"same": first.changes.counts["create"]}


def limits_of(deployed: Deployment) -> dict[str, int]:
    [cluster] = [each for urn, each in deployed.resources().items() if named(urn) == "Cluster/cluster-cluster"]
    return {each["resourceType"]: each["maximum"] for each in cluster["inputs"]["clusterAutoscaling"]["resourceLimits"]}


def test_removing_a_pool_deletes_its_own_resources_and_updates_only_what_derives_from_it(deployed: Deployment) -> None:
    settings = without_a100s()
    previewed = deployed.run(settings).preview(ignore, refresh=True)
    assert limits_of(deployed)["nvidia-tesla-a100"] > 1

    changes = deployed.up(settings)

    # The flavor and the shares of a queued pool are Kueue's.
    assert changes.deleted == {"GkeGpuNodePool/a100-flex", "NodePool/a100-flex-node-pool", "ResourceFlavor/queues-a100-flex"}
    teams = ("nlp", "vision")
    of_teams = {name for team in teams for name in (f"ClusterQueue/queues-{team}", f"Team/{team}", f"ResourceQuota/{team}-quota")}
    # No queue waits for flex-start any more, so Kueue need not wait for hours.
    derived = {"Queues/queues", "Cohort/queues-acme-cohort", "KueueController/kueue", "Release/kueue-release", *ADMISSION}
    assert changes.updated == LIMITS | {COST} | VIEWS | derived | of_teams
    assert changes.created == set()
    assert_in_place(changes)
    assert previewed == changes.counts
    assert {(call.operation, named(call.urn)) for call in changes.calls} == modelled(settings)
    # The limit of a GPU outlives its last pool, at the least that there is.
    assert limits_of(deployed)["nvidia-tesla-a100"] == 1
    # Kueue keeps a flavor that a queue names, and the engine would wait for it.
    gone = changes.order("delete", "ResourceFlavor/queues-a100-flex")
    users = [each for each in changes.updated if each.startswith(("ClusterQueue/", "Cohort/"))]
    assert all(changes.order("update", each) < gone for each in users)


@pytest.mark.parametrize(
    "former,doubted",
    [
        ([], ["gpu-limit-removed"]),
        pytest.param(
            ["nvidia-tesla-a100"],
            [],
            marks=pytest.mark.nightly(held_by="test_a_preview_tells_of_a_limit_that_goes_with_the_last_pool_of_its_gpu"),
        ),
    ],
)
def test_a_preview_tells_of_a_limit_that_goes_with_the_last_pool_of_its_gpu(
    former: list[str], doubted: list[str], deployed: Deployment
) -> None:
    settings, heard = without_a100s(), ApiRefusals()
    settings["cluster"]["former_accelerators"] = former

    said: list[Any] = []

    def hear(event: Any) -> None:
        heard.hear(event)
        said.extend([event.diagnostic_event] if event.diagnostic_event else [])

    deployed.run(settings).preview(ignore, hear=hear, refresh=True)

    assert [(each.rule, each.certain) for each in heard.found] == [(rule, False) for rule in doubted]
    # The program itself says it to the engine, so that a plain `pulumi preview` shows it as well.
    assert any("gpu-limit-removed" in each.message for each in said) is bool(doubted)
    # Five debug messages per resource would keep the program waiting.
    assert "debug" not in {each.severity for each in said}


def test_another_ceiling_of_a_pool_updates_that_pool_and_the_limits_and_quotas_derived_from_it(deployed: Deployment) -> None:
    changes = deployed.up(with_more_nodes())

    # What belongs to nobody is the cohort's, and a team's quota holds what it can borrow.
    quotas = {f"ResourceQuota/{team}-quota" for team in ("nlp", "vision")}
    derived = {"Queues/queues", "Cohort/queues-acme-cohort", *quotas}
    assert changes.updated == {"GkeGpuNodePool/a100-flex", "NodePool/a100-flex-node-pool", COST} | LIMITS | derived | VIEWS
    assert (changes.created, changes.deleted) == (set(), set())
    assert_in_place(changes)
    [resized] = [call.changed for call in changes.calls if call.kind == NODE_POOL]
    assert resized == ("autoscaling.totalMaxNodeCount",)
    # Otherwise the pool could not grow into its new ceiling yet.
    assert changes.order("update", "Cluster/cluster-cluster") < changes.order("update", "NodePool/a100-flex-node-pool")


@pytest.mark.nightly(held_by="test_removing_a_pool_deletes_its_own_resources_and_updates_only_what_derives_from_it")
def test_a_team_goes_together_with_the_room_that_its_share_took(deployed: Deployment) -> None:
    settings = shipped()
    settings["teams"] = [team for team in settings["teams"] if team["name"] != "nlp"]
    [pool] = [pool for pool in settings["pools"] if pool["name"] == "a100-flex"]
    pool["max_nodes"] = 2

    changes = deployed.up(settings)

    # Counted with the quota of the team that goes, the queues would promise more than the pool has, and no `up` would get past that.
    assert {"Team/nlp", "ClusterQueue/queues-nlp"} <= changes.deleted
    assert "NodePool/a100-flex-node-pool" in changes.updated
    assert changes.replaced == set()


@pytest.mark.nightly(held_by="test_a_preview_names_the_settings_that_a_pool_is_made_anew_for")
def test_a_property_that_is_replaced_on_change_is_seen_to_replace_its_pool_and_no_other(deployed: Deployment) -> None:
    settings = shipped()
    [pool] = [each for each in settings["pools"] if each["name"] == "a100-flex"]
    pool["max_run_hours"] = 164

    changes = deployed.up(settings)

    assert changes.replaced == {"NodePool/a100-flex-node-pool"}
    assert [(call.operation, named(call.urn)) for call in changes.calls if named(call.urn) not in VIEWS] == [
        ("delete", "NodePool/a100-flex-node-pool"),
        ("create", "NodePool/a100-flex-node-pool"),
    ]
    assert ("replace", "NodePool/a100-flex-node-pool") in modelled(settings)


def test_a_preview_names_the_settings_that_a_pool_is_made_anew_for(deployed: Deployment) -> None:
    settings = shipped()
    pools = {each["name"]: each for each in settings["pools"]}
    pools["l4-on-demand"] |= {"gpu_driver": "latest", "secondary_boot_disk_images": ["projects/acme-ai-prod/global/images/weights"]}
    pools["h100-reserved"] |= {"compact_placement": True, "boot_disk_gib": 300}
    heard = Losses()

    deployed.run(settings).preview(ignore, hear=heard.hear, refresh=True)

    anew = "is deleted and made anew, with its nodes and what runs on them, because"
    assert told(heard.found) == [
        f"pool h100-reserved {anew} compact_placement changes",
        f"pool l4-on-demand {anew} gpu_driver, secondary_boot_disk_images change",
    ]


def test_what_a_person_gets_of_the_deployed_stack_is_known_and_holds_no_secret(deployed: Deployment) -> None:
    outputs = deployed.run(shipped()).outputs()

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
