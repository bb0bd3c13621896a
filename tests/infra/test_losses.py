"""Deletions that lose data or work: their description, and the refusal of those without permission."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from gke_pool_args import NODE_POOL, pool_args
from pulumi.automation.events import DiffKind, PropertyDiff

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.components.gke.gpu_node_pool import GkeGpuNodePool
from flexspot.infra.deployment.losses import HeldKind, Losses, check_permissions, held, refusal, summary_lines
from flexspot.lab.providers.cloud_rules.rule_differences import changes

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulumi.automation import EngineEvent

    from flexspot.infra.deployment.losses import Loss

PLACE = "urn:pulumi:prod-gke::flexspot"
CLUSTER = f"{PLACE}::flexspot:index:GkeCluster$gcp:container/cluster:Cluster::cluster-cluster"
POOL = f"{PLACE}::flexspot:index:GkeGpuNodePool$gcp:container/nodePool:NodePool::a100-flex-node-pool"
BUCKET = f"{PLACE}::flexspot:index:GcsBucket$gcp:storage/bucket:Bucket::checkpoints-bucket"
LUSTRE = f"{PLACE}::flexspot:index:LustreFileSystem$aws:fsx/lustreFileSystem:LustreFileSystem::datasets-lustre-file-system"
FILE_SYSTEM = f"{PLACE}::flexspot:index:EfsFileSystem$aws:efs/fileSystem:FileSystem::checkpoints-efs-file-system"
NAMESPACE = f"{PLACE}::flexspot:index:Team$kubernetes:core/v1:Namespace::nlp-namespace"
CLAIM = f"{PLACE}::flexspot:index:GcsFuseVolume$kubernetes:core/v1:PersistentVolumeClaim::nlp-checkpoints-claim"
ROUTER = f"{PLACE}::flexspot:index:GkeNetwork$gcp:compute/router:Router::network-router"

INPUTS: dict[str, dict[str, Any]] = {
    CLUSTER: {"name": "prod", "deletionProtection": False},
    POOL: {"name": "a100-flex"},
    BUCKET: {"name": "acme-prod-checkpoints"},
    LUSTRE: {"storageCapacity": 1200, "tags": {"Name": "prod-datasets"}},
    FILE_SYSTEM: {"encrypted": True, "tags": {"Name": "prod-checkpoints"}},
    NAMESPACE: {"metadata": {"name": "nlp"}},
    CLAIM: {"metadata": {"name": "checkpoints", "namespace": "nlp"}},
    ROUTER: {"name": "prod-router"},
}


def heard(*steps: tuple[str, str], **inputs: Any) -> list[Loss]:
    losses = Losses()
    for op, urn in steps:
        losses.hear(event(op, urn, inputs))
    return losses.found


def event(op: str, urn: str, inputs: dict[str, Any], detailed_diff: dict[str, PropertyDiff] | None = None) -> EngineEvent:
    """Return an event with the parts that are read."""
    old = SimpleNamespace(inputs={**INPUTS[urn], **inputs})
    metadata = SimpleNamespace(urn=urn, op=op, old=old, detailed_diff=detailed_diff)
    return SimpleNamespace(resource_pre_event=SimpleNamespace(metadata=metadata))  # pyrefly: ignore[bad-return] -- the rest is not read


def test_losses_are_described_with_their_consequences() -> None:
    found = heard(("delete", POOL), ("replace", BUCKET), ("delete-replaced", NAMESPACE), ("replace", CLAIM))

    assert summary_lines(found) == [
        "pool a100-flex is deleted, with its nodes and what runs on them",
        "bucket acme-prod-checkpoints is deleted and created again, with everything in it",
        "namespace nlp is deleted and created again, with everything in it",
        "volume claim nlp/checkpoints is deleted and created again",
    ]


def test_a_replacement_is_reported_once_for_all_its_steps() -> None:
    assert len(heard(("delete-replaced", POOL), ("replace", POOL), ("create-replacement", POOL), ("delete", POOL))) == 1
    assert heard(("delete-replaced", POOL), ("delete", POOL))[0].replaced


A100 = {"machine": "a2-highgpu-1g", "accelerator": "nvidia-tesla-a100"}
RESERVED = {"capacity_type": "reserved", "reservation": {"use": "specific", "name": "one"}}
FLEX = {"capacity_type": "flex-start"}
H100 = {"machine": "a3-highgpu-1g", "accelerator": "nvidia-h100-80gb"}


@pytest.mark.parametrize(
    "base,change,setting",
    [
        ({}, {"gpu_driver": "latest"}, "gpu_driver"),
        ({}, {"gpu_sharing": {"strategy": "mps", "clients_per_gpu": 2}}, "gpu_sharing"),
        (A100, {"mig_partition": "1g.5gb"}, "mig_partition"),
        ({}, {"secondary_boot_disk_images": ["projects/acme/global/images/weights"]}, "secondary_boot_disk_images"),
        (A100 | {"zones": ["us-central1-a"]}, {"compact_placement": True}, "compact_placement"),
        ({}, {"local_ssd_disks": 1}, "local_ssd_disks or machine"),
        ({}, {"boot_disk_kms_key": "projects/a-keys/locations/us-central1/keyRings/ai/cryptoKeys/disks"}, "boot_disk_kms_key"),
        (H100, {"confidential_nodes": "tdx"}, "confidential_nodes"),
        ({}, {"capacity_type": "on-demand"}, "capacity_type"),
        (FLEX, {"max_run_seconds": 3600}, "max_run_hours"),
        (FLEX, {"capacity_type": "queued"}, "capacity_type, max_run_hours"),
        (RESERVED, {"reservation": {"use": "specific", "name": "two"}}, "reservation"),
        ({}, {"machine": "g2-standard-24", "gpus_per_node": 2}, "gpus_per_node"),
        ({}, A100, "machine"),
        ({}, {"max_pods_per_node": 32}, "network.max_pods_per_node"),
        ({}, {"cluster": "another"}, "cluster.name or cluster.existing"),
        ({}, {"cluster_zone": "us-central1-a"}, "region or cluster.zone"),
    ],
)
def test_a_pools_replacement_names_the_settings_that_cause_it(
    base: dict[str, Any], change: dict[str, Any], setting: str, register: Callable[..., Any]
) -> None:
    [before] = register(lambda: GkeGpuNodePool("l4", pool_args(**base))).of(NODE_POOL)
    [after] = register(lambda: GkeGpuNodePool("l4", pool_args(**base | change))).of(NODE_POOL)
    found = {each.written: each for each in changes(NODE_POOL, before, after)}
    kinds = {path: DiffKind[f"{each.change.name}_REPLACE" if each.replaces else each.change.name] for path, each in found.items()}
    losses = Losses()

    for op, differences in (("delete-replaced", {}), ("replace", kinds), ("create-replacement", kinds)):
        losses.hear(event(op, POOL, {}, {path: PropertyDiff(kind, input_diff=True) for path, kind in differences.items()}))

    assert any(kind.value.endswith("-replace") for kind in kinds.values()), "the provider makes it anew"
    verb = "change" if "," in setting else "changes"
    words = f"pool a100-flex is deleted and created again, with its nodes and what runs on them, because {setting} {verb}"
    assert summary_lines(losses.found) == [words]


def test_settings_that_change_in_place_are_not_named_as_a_cause() -> None:
    losses = Losses()
    in_place = PropertyDiff(DiffKind.UPDATE, input_diff=True)
    anew = PropertyDiff(DiffKind.UPDATE_REPLACE, input_diff=True)

    losses.hear(event("replace", POOL, {}, {"autoscaling.totalMaxNodeCount": in_place, "location": anew, "nodeConfig.spot": in_place}))

    assert [each.settings for each in losses.found] == [("region or cluster.zone",)]


def test_changes_that_lose_nothing_are_not_reported() -> None:
    assert heard(("replace", ROUTER), ("update", CLUSTER), ("same", BUCKET), ("create-replacement", POOL)) == []


def test_the_platforms_namespaces_and_karpenters_queue_hold_no_data() -> None:
    assert held("flexspot:index:KubeStateMetrics$kubernetes:core/v1:Namespace") is None
    assert held("flexspot:index:InterruptionQueue$aws:sqs/queue:Queue") is None
    assert held("flexspot:index:SqsWorkQueue$aws:sqs/queue:Queue") is HeldKind.TEAM_STORAGE


@pytest.mark.parametrize("urn", [CLUSTER, POOL, BUCKET, NAMESPACE, CLAIM])
def test_production_replaces_data_or_work_only_if_it_is_named(urn: str) -> None:
    found = heard(("replace", urn))

    refused = refusal(found, (), production=True)
    assert refused is not None
    assert refused.exit_code == 1
    assert f"--allow-replace {found[0].permission}" in refused.remedy
    check_permissions([found[0].permission])
    assert refusal(found, [found[0].permission], production=True) is None
    assert refusal(found, (), production=False) is None


def test_removed_pools_and_teams_are_deleted_and_removed_clusters_and_buckets_refused() -> None:
    assert refusal(heard(("delete", POOL), ("delete", NAMESPACE), ("delete", CLAIM)), (), production=True) is None
    assert refusal(heard(("delete", CLUSTER)), (), production=True) is not None
    assert refusal(heard(("delete", BUCKET)), (), production=True) is not None


@pytest.mark.parametrize("urn,name", [(FILE_SYSTEM, "prod-checkpoints"), (LUSTRE, "prod-datasets")])
def test_production_deletes_a_file_system_only_if_it_is_named(urn: str, name: str) -> None:
    found = heard(("delete", urn))

    assert summary_lines(found) == [f"file system {name} is deleted, with everything in it"]
    refused = refusal(found, (), production=True)
    assert refused is not None
    assert f"--allow-replace file-system={name}" in refused.remedy
    assert refusal(found, [f"file-system={name}"], production=True) is None


def test_permission_for_a_cluster_covers_its_objects_but_no_bucket() -> None:
    on_it = [("replace", CLUSTER), ("delete-replaced", POOL), ("delete-replaced", NAMESPACE), ("delete-replaced", CLAIM)]

    refused = refusal(heard(*on_it), (), production=True)
    assert refused is not None
    assert refused.remedy.count("--allow-replace") == 1
    assert refusal(heard(*on_it), ["cluster=prod"], production=True) is None
    assert refusal(heard(*on_it, ("replace", BUCKET)), ["cluster=prod"], production=True) is not None


@pytest.mark.parametrize("production", [True, False])
def test_a_protected_cluster_is_deleted_by_no_option(production: object) -> None:
    """The cloud refuses its deletion, when everything around it would already be deleted."""
    found = heard(("delete-replaced", CLUSTER), deletionProtection=True)

    refused = refusal(found, ["cluster=prod"], production=bool(production))
    assert refused is not None
    assert "cluster.deletion_protection: false" in refused.remedy
    assert "as the only change" in refused.remedy


@pytest.mark.parametrize("written", ["prod", "cluser=prod", "cluster=", "=prod"])
def test_a_permission_that_matches_nothing_is_bad_usage(written: str) -> None:
    with pytest.raises(ExplainedError, match=f"--allow-replace: {written} names nothing") as refused:
        check_permissions([written])

    assert refused.value.exit_code == ExitCode.BAD_USAGE
    assert "volume-claim" in refused.value.remedy
