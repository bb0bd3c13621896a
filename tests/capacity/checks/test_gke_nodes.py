"""What GKE's own options of a pool must agree with."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import CLASS, told

from capacity.plan.checks.pool_options import (
    blocks_are_of_a_reservation_of_the_project,
    blocks_are_of_machines_that_come_in_them,
    gke_takes_the_pools,
    split_gpus_are_for_services,
)

SERVICE: dict[str, Any] = {"classes.rendering": CLASS | {"queued": False}, "pools.0.serves": ["rendering"], "teams.0.shares": {}}


@pytest.mark.parametrize(
    "field,written", [("gpu_sharing", {"strategy": "time-sharing", "clients_per_gpu": 4}), ("mig_partition", "1g.5gb")]
)
def test_a_queue_never_gives_away_parts_of_a_gpu_as_whole_ones(field: str, written: object) -> None:
    split = {f"pools.0.{field}": written}

    assert told(split_gpus_are_for_services, "gke", split) == [f"refused: split-gpus-in-a-queue at pools.0.{field}"]
    assert told(split_gpus_are_for_services, "gke", SERVICE | split) == []
    assert told(split_gpus_are_for_services, "gke") == []


FLEX: dict[str, Any] = {"pools.0.capacity_type": "flex-start"}
QUEUED: dict[str, Any] = {"pools.0.capacity_type": "queued"}
RESERVED: dict[str, Any] = {"pools.0.capacity_type": "reserved"}
A100: dict[str, Any] = {"pools.0.machine": "a2-highgpu-1g"}
N1: dict[str, Any] = {"pools.0.machine": "n1-standard-4", "pools.0.gpus_per_node": 1}
PARTS: dict[str, Any] = {"pools.0.mig_partition": "1g.5gb"}


@pytest.mark.parametrize(
    "changes,rule,option",
    [
        (QUEUED | {"pools.0.machine": "a3-edgegpu-8g"}, "machine-not-in-dws", "machine"),
        (FLEX | {"pools.0.surge": {"max_surge": 1}}, "upgrades-of-dws-pool", "surge"),
        (FLEX | {"pools.0.hold_upgrades": True}, "upgrades-of-dws-pool", "hold_upgrades"),
        (FLEX | {"pools.0.compact_placement": True}, "no-compact-placement", "compact_placement"),
        (N1 | {"pools.0.compact_placement": True}, "no-compact-placement", "compact_placement"),
        (A100 | {"pools.0.compact_placement": True}, "compact-over-zones", "compact_placement"),
        ({"pools.0.reservation": {"name": "acme-l4"}}, "reservation-not-used", "reservation"),
        (RESERVED | {"pools.0.reservation": {"use": "any", "project": "acme-shared"}}, "reservation-not-used", "reservation.project"),
        ({"pools.0.machine": "g2-standard-24", "pools.0.local_ssd_disks": 1}, "number-of-local-disks", "local_ssd_disks"),
        ({"pools.0.machine": "a2-highgpu-2g", "pools.0.local_ssd_disks": 3}, "number-of-local-disks", "local_ssd_disks"),
        ({"pools.0.local_ssd_disks": 32}, "too-many-local-disks", "local_ssd_disks"),
        ({"pools.0.machine": "a3-highgpu-2g", "pools.0.confidential_nodes": "tdx"}, "machine-not-confidential", "confidential_nodes"),
        (A100 | {"pools.0.mig_partition": "1g.80gb"}, "gpu-without-partitions", "mig_partition"),
        (
            A100 | PARTS | {"pools.0.gpu_sharing": {"strategy": "mps", "clients_per_gpu": 2}},
            "partitions-shared-by-mps",
            "gpu_sharing.strategy",
        ),
    ],
)
def test_what_gke_would_refuse_is_told_with_the_option_that_asks_for_it(changes: dict[str, Any], rule: str, option: str) -> None:
    """Besides the mistakes of wrong_settings.yaml."""
    assert told(gke_takes_the_pools, "gke", changes) == [f"refused: {rule} at pools.0.{option}"]


@pytest.mark.parametrize(
    "changes",
    [
        FLEX | {"pools.0.max_run_hours": 168},
        QUEUED | {"pools.0.machine": "a3-highgpu-8g"},
        {"pools.0.machine": "a3-edgegpu-8g"},
        {"pools.0.shutdown_grace_seconds": 120},
        {"pools.0.min_nodes": 1},
        RESERVED | {"pools.0.reservation": {"name": "acme-l4", "project": "acme-shared"}},
        A100 | PARTS | {"pools.0.compact_placement": True, "pools.0.zones": ["us-central1-a"]},
        {"pools.0.local_ssd_disks": 1},
        {"pools.0.machine": "a3-highgpu-1g", "pools.0.confidential_nodes": "tdx"},
        {"pools.0.machine": "a2-highgpu-2g", "pools.0.local_ssd_disks": 4},
    ],
)
def test_what_gke_takes_is_not_refused(changes: dict[str, Any]) -> None:
    assert told(gke_takes_the_pools, "gke", changes) == []


PROJECTS: dict[str, dict[str, str]] = {"theirs": {"project": "shared"}, "ours": {"project": "acme-ai-test"}, "not said": {}}
H200: dict[str, Any] = RESERVED | {"pools.0.machine": "a3-ultragpu-8g", "pools.0.zones": []}


def test_a_block_is_of_a_reservation_of_machines_that_come_in_blocks() -> None:
    block = {"pools.0.reservation": {"name": "acme", "block": "acme-block-1"}}

    assert told(blocks_are_of_machines_that_come_in_them, "gke", H200 | block) == []
    assert told(blocks_are_of_machines_that_come_in_them, "gke", RESERVED | block) == [
        "warned: block-not-documented at pools.0.reservation.block"
    ]
    assert told(blocks_are_of_machines_that_come_in_them, "gke", RESERVED | {"pools.0.reservation": {"name": "acme"}}) == []


def test_a_block_of_another_projects_reservation_is_told_of() -> None:
    block = {"name": "acme-h200", "block": "one"}
    pools = {whose: H200 | {"pools.0.reservation": block | project} for whose, project in PROJECTS.items()}

    assert told(blocks_are_of_a_reservation_of_the_project, "gke", pools["theirs"]) == [
        "warned: block-of-another-project at pools.0.reservation.block"
    ]
    assert told(blocks_are_of_a_reservation_of_the_project, "gke", pools["ours"]) == []
    assert told(blocks_are_of_a_reservation_of_the_project, "gke", pools["not said"]) == []


def test_pools_of_eks_are_not_judged_by_gkes_rules() -> None:
    assert told(gke_takes_the_pools, "eks") == []
