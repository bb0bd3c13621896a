"""What GKE's own options of a pool must agree with."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import CLASS, found, told

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


@pytest.mark.parametrize(
    "changes,rule,option",
    [
        pytest.param({"pools.0.max_run_hours": 24}, "run-time-without-flex-start", "max_run_hours", id="an end for Spot nodes"),
        pytest.param(QUEUED | {"pools.0.max_run_hours": 24}, "run-time-on-queued-pool", "max_run_hours", id="an end for queued nodes"),
        pytest.param(FLEX | {"pools.0.max_run_hours": 169}, "run-time-too-long", "max_run_hours", id="more than seven days"),
        pytest.param(
            FLEX | {"pools.0.shutdown_grace_seconds": 120},
            "shutdown-grace-without-spot",
            "shutdown_grace_seconds",
            id="a longer shutdown of flex-start",
        ),
        pytest.param(FLEX | {"pools.0.machine": "a3-edgegpu-8g"}, "machine-not-in-dws", "machine", id="flex-start without the machine"),
        pytest.param(QUEUED | {"pools.0.machine": "a3-edgegpu-8g"}, "machine-not-in-dws", "machine", id="queued without the machine"),
        pytest.param(
            {"pools.0.capacity_type": "on-demand", "pools.0.machine": "a3-highgpu-4g-nolssd"},
            "machine-not-on-demand",
            "machine",
            id="on demand without the machine",
        ),
        pytest.param(FLEX | {"pools.0.min_nodes": 1}, "dws-pool-with-floor", "min_nodes", id="flex-start that keeps a node"),
        pytest.param(FLEX | {"pools.0.surge": {"max_surge": 1}}, "upgrades-of-dws-pool", "surge", id="flex-start with upgrades"),
        pytest.param(FLEX | {"pools.0.hold_upgrades": True}, "upgrades-of-dws-pool", "hold_upgrades", id="flex-start with held upgrades"),
        pytest.param(QUEUED | {"pools.0.compact_placement": True}, "no-compact-placement", "compact_placement", id="queued and compact"),
        pytest.param(FLEX | {"pools.0.compact_placement": True}, "no-compact-placement", "compact_placement", id="flex-start and compact"),
        pytest.param(
            {"pools.0.machine": "n1-standard-4", "pools.0.gpus_per_node": 1, "pools.0.compact_placement": True},
            "no-compact-placement",
            "compact_placement",
            id="a machine that is not placed compactly",
        ),
        pytest.param(A100 | {"pools.0.compact_placement": True}, "compact-over-zones", "compact_placement", id="compact in two zones"),
        pytest.param(RESERVED, "reserved-pool-without-reservation", "reservation", id="reserved without a reservation"),
        pytest.param({"pools.0.reservation": {"name": "acme-l4"}}, "reservation-not-used", "reservation", id="Spot with a reservation"),
        pytest.param(
            RESERVED | {"pools.0.reservation": {"use": "any", "project": "acme-shared"}},
            "reservation-not-used",
            "reservation.project",
            id="any reservation of one project",
        ),
        pytest.param(
            {"pools.0.machine": "g2-standard-24", "pools.0.local_ssd_disks": 1},
            "number-of-local-disks",
            "local_ssd_disks",
            id="one disk where it is two or none",
        ),
        pytest.param(
            {"pools.0.machine": "a2-highgpu-2g", "pools.0.local_ssd_disks": 3}, "number-of-local-disks", "local_ssd_disks", id="three disks"
        ),
        pytest.param({"pools.0.local_ssd_disks": 32}, "too-many-local-disks", "local_ssd_disks", id="more disks than the machine takes"),
        pytest.param({"pools.0.confidential_nodes": "sev"}, "machine-not-confidential", "confidential_nodes", id="a confidential L4"),
        pytest.param(
            {"pools.0.machine": "a3-highgpu-2g", "pools.0.confidential_nodes": "tdx"},
            "machine-not-confidential",
            "confidential_nodes",
            id="two confidential H100s",
        ),
        pytest.param({"pools.0.mig_partition": "1g.5gb"}, "gpu-without-partitions", "mig_partition", id="parts of an L4"),
        pytest.param(
            A100 | {"pools.0.mig_partition": "1g.80gb"}, "gpu-without-partitions", "mig_partition", id="a part larger than it all"
        ),
        pytest.param(
            A100 | {"pools.0.mig_partition": "1g.5gb", "pools.0.gpu_sharing": {"strategy": "mps", "clients_per_gpu": 2}},
            "partitions-shared-by-mps",
            "gpu_sharing.strategy",
            id="parts shared by MPS",
        ),
    ],
)
def test_what_gke_would_refuse_is_told_with_the_option_that_asks_for_it(changes: dict[str, Any], rule: str, option: str) -> None:
    assert told(gke_takes_the_pools, "gke", changes) == [f"refused: {rule} at pools.0.{option}"]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="the least that a cloud takes"),
        pytest.param(FLEX | {"pools.0.max_run_hours": 168}, id="seven days of flex-start"),
        pytest.param(QUEUED | {"pools.0.machine": "a3-highgpu-8g"}, id="queued on a machine of DWS"),
        pytest.param({"pools.0.machine": "a3-edgegpu-8g"}, id="Spot on a machine that DWS does not have"),
        pytest.param({"pools.0.shutdown_grace_seconds": 120}, id="a longer shutdown of Spot"),
        pytest.param({"pools.0.min_nodes": 1}, id="a Spot pool that keeps a node"),
        pytest.param(RESERVED | {"pools.0.reservation": {"name": "acme-l4", "project": "acme-shared"}}, id="a shared reservation"),
        pytest.param(
            A100 | {"pools.0.mig_partition": "1g.5gb", "pools.0.compact_placement": True, "pools.0.zones": ["us-central1-a"]},
            id="parts of A100s placed compactly",
        ),
        pytest.param({"pools.0.local_ssd_disks": 1}, id="one more local disk"),
        pytest.param({"pools.0.machine": "a3-highgpu-1g", "pools.0.confidential_nodes": "tdx"}, id="one confidential H100"),
        pytest.param({"pools.0.machine": "a2-highgpu-2g", "pools.0.local_ssd_disks": 4}, id="four disks of eight"),
    ],
)
def test_what_gke_takes_is_not_refused(changes: dict[str, Any]) -> None:
    assert told(gke_takes_the_pools, "gke", changes) == []


def test_a_run_time_is_told_in_the_hours_in_which_it_was_written() -> None:
    (problem,) = found(gke_takes_the_pools, "gke", FLEX | {"pools.0.max_run_hours": 200})

    assert problem.value == "200"
    assert "7 days" in problem.problem


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
