"""GkeGpuNodePool: refused arguments. A message names the input, its value, what is allowed and the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from gke_pool_args import pool_args

from flexspot.components.gke.gpu_node_pool import GkeGpuNodePool
from flexspot.components.gke.gpu_pool_args import checked_pool

if TYPE_CHECKING:
    from component_types import Refusal

FLEX = {"capacity_type": "flex-start"}
QUEUED = {"capacity_type": "queued"}
RESERVED = {"capacity_type": "reserved"}
A100 = {"machine": "a2-highgpu-1g", "accelerator": "nvidia-tesla-a100"}
H100_EDGE = {"machine": "a3-edgegpu-8g", "accelerator": "nvidia-h100-80gb", "gpus_per_node": 8}
T4 = {"machine": "n1-standard-8", "accelerator": "nvidia-tesla-t4"}


def taint(**changes: str) -> list[dict[str, str]]:
    return [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"} | changes]


def refused(changes: dict[str, Any]) -> str:
    with pytest.raises(ValueError, match="GkeGpuNodePool l4") as error:
        checked_pool("l4", pool_args(**changes))
    return str(error.value)


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"max_nodes": 0}, "gpu-pool-without-limit: GkeGpuNodePool l4: max_nodes (is 0): a GPU pool needs a ceiling of at least one"),
        (
            {"taints": []},
            ("gpu-pool-without-taint: GkeGpuNodePool l4: taints: other pods would fill the nodes; add nvidia.com/gpu=present:NoSchedule"),
        ),
        ({"taints": taint(effect="PreferNoSchedule")}, "gpu-pool-without-taint: GkeGpuNodePool l4: taints (is nvidia.com/gpu:PreferNo"),
        ({"taints": taint(value="true")}, "taints[nvidia.com/gpu].value (is true): GKE sets a taint with this key and the"),
        ({"taints": [*taint(), {"key": "team", "value": "x", "effect": "Never"}]}, "taints[team].effect (is Never): must be one of"),
        (
            {**QUEUED, "taints": [*taint(), {"key": "cloud.google.com/gke-queued", "value": "true", "effect": "NoSchedule"}]},
            "taints (is cloud.google.com/gke-queued): is set by GKE, which rejects a second one; leave it out",
        ),
        ({"node_labels": {"cloud.google.com/gke-spot": "true"}}, "node_labels (is cloud.google.com/gke-spot): is set by GKE"),
    ],
)
def test_a_pool_without_limit_or_taint_or_with_a_label_or_taint_that_gke_sets_is_refused(change: dict[str, Any], problem: str) -> None:
    assert problem in refused(change)


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"capacity_type": "preemptible"}, "capacity_type (is preemptible): must be one of reserved, flex-start, queued, spot, on-demand"),
        (
            {**FLEX, "max_run_seconds": 604_801},
            "max_run_seconds (is 604801): must be 10 minutes (600 s) to 7 days (604800 s) for flex-start",
        ),
        ({**FLEX, "max_run_seconds": 599}, "max_run_seconds (is 599): must be 10 minutes (600 s) to 7 days (604800 s) for flex-start"),
        ({**FLEX, "shutdown_grace_seconds": 120}, "shutdown_grace_seconds (is 120): is only for spot, and this pool is flex-start; leave"),
        ({**QUEUED, "max_run_seconds": 3600}, "max_run_seconds (is 3600): is not supported for queued pools"),
        ({"max_run_seconds": 3600}, "max_run_seconds (is 3600): is only for flex-start, and this pool is spot; leave it out"),
        ({"shutdown_grace_seconds": 29}, "shutdown_grace_seconds (is 29): should be at least 30"),
        ({"shutdown_grace_seconds": 121}, "shutdown_grace_seconds (is 121): should be at most 120"),
        ({**FLEX, "min_nodes": 1}, "min_nodes (is 1): must be 0 for flex-start, whose nodes start on request; leave it out"),
        ({"min_nodes": 5}, "min_nodes (is 5): must be 0 to max_nodes (4)"),
        ({**FLEX, **H100_EDGE}, "machine (is a3-edgegpu-8g): is not offered by DWS, which flex-start needs"),
        ({"capacity_type": "on-demand", "machine": "a3-highgpu-1g", "accelerator": "nvidia-h100-80gb"}, "machine (is a3-highgpu-1g):"),
        (
            {**FLEX, "compact_placement": True},
            "compact_placement (is true): is supported with flex-start only on a3-ultragpu and a4, not on",
        ),
        (
            {**QUEUED, "compact_placement": True},
            "compact_placement (is true): is not supported for queued pools; leave it out: DWS places the nodes of a request itself",
        ),
        ({**T4, "compact_placement": True}, "compact_placement (is true): is not supported on n1-standard-8"),
        (
            {"machine": "a2-highgpu-1g", "accelerator": "nvidia-tesla-a100", "compact_placement": True},
            "compact_placement (is true): is only possible for a pool in one zone, and this pool is in 2; set the pool's zones to one",
        ),
        (RESERVED, "reservation (is missing): a reserved pool needs one; add {use: specific, name: NAME}, or {use: any}"),
        ({"reservation": {"use": "any"}}, "reservation (is any): is only for reserved pools, and this pool is spot; leave it out"),
        ({**RESERVED, "reservation": {"use": "some"}}, "reservation.use (is 'some'): is not one of the allowed values"),
        ({**RESERVED, "reservation": {"use": "specific"}}, "reservation: use: specific needs a name; with use: any, leave the name out"),
        ({**RESERVED, "reservation": {"use": "any", "name": "l4"}}, "reservation (is 'l4'): use: specific needs a name; with"),
    ],
)
def test_options_that_a_capacity_type_forbids_or_lacks_are_refused(change: dict[str, Any], problem: str) -> None:
    assert problem in refused(change)


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"gpus_per_node": 8}, "machine (is g2-standard-8): has 1 nvidia-l4 (requested: 8"),
        ({**T4, "gpus_per_node": 3}, "machine (is n1-standard-8): has 1 or 2 or 4 nvidia-tesla-t4 (requested: 3 nvidia-tesla-t4); no"),
        (
            {"machine": "g2-standard-5"},
            "machine (is g2-standard-5): is not in the machine catalog (flexspot/capacity/catalog/gcp.yaml) and has no",
        ),
        ({"machine": "e2-standard-4"}, "machine (is e2-standard-4): has no GPUs (requested: 1 nvidia-l4); use one of g2-"),
        ({"gpu_driver": "newest"}, "gpu_driver (is 'newest'): is not one of the allowed values; allowed: default, latest, disabled"),
        ({"gpu_sharing": {"strategy": "mig", "clients_per_gpu": 2}}, "gpu_sharing.strategy (is 'mig'): is not one of the allowed values"),
        ({"gpu_sharing": {"strategy": "mps", "clients_per_gpu": 49}}, "gpu_sharing.clients_per_gpu (is 49): should be at most 48"),
        ({"gpu_sharing": {"strategy": "mps", "clients_per_gpu": 1}}, "gpu_sharing.clients_per_gpu (is 1): should be at least 2"),
        ({**A100, "mig_partition": "1g.5gb", "gpu_sharing": {"strategy": "mps", "clients_per_gpu": 2}}, "gpu_sharing.strategy (is mps):"),
        ({"mig_partition": "1g.5gb"}, "mig_partition (is 1g.5gb): GKE does not partition nvidia-l4; use gpu_sharing, or an A100 or later"),
        *(
            (
                {**A100, "mig_partition": size},
                f"mig_partition (is {size}): GKE's device plugin does not support it on nvidia-tesla-a100; allowed: 1g.5gb, 2g.10gb",
            )
            # With a larger GPU, without GPUs, and with an NVIDIA GPU that GKE's device plugin does not support.
            for size in ("7g.80gb", "5g.20gb", "1g.40gb", "4g.20gb")
        ),
        ({**A100, "mig_partition": "small"}, "mig_partition (is 'small'): does not have the required form"),
        ({"local_ssd_disks": 2}, "local_ssd_disks (is 2): g2-standard-8 accepts 0 to 1 disks in addition to its own"),
        ({"boot_disk_gib": 9}, "boot_disk_gib (is 9): should be at least 10"),
        ({"max_pods_per_node": 257}, "max_pods_per_node (is 257): must be 8 to 256"),
        ({"zones": []}, "zones (is empty): must be zones of us-central1; use one such as us-central1-a"),
        ({"zones": ["us-east1-b"]}, "zones (is us-east1-b): must be zones of us-central1"),
        ({"cluster_zone": "us-east1-b"}, "cluster_zone (is us-east1-b): is not a zone of us-central1; use the control plane's"),
        (
            {"pool": "a" * 41},
            f"pool (is {'a' * 41}): must be lower-case letters, digits and inner hyphens, beginning with a letter, 40 at most",
        ),
    ],
)
def test_machines_gpus_disks_and_names_that_do_not_exist_are_refused(change: dict[str, Any], problem: str) -> None:
    assert problem in refused(change)


def test_nothing_of_a_refused_pool_is_registered(refusal: Refusal) -> None:
    assert "gpu-pool-without-limit" in refusal(GkeGpuNodePool, "l4", pool_args(max_nodes=0))
