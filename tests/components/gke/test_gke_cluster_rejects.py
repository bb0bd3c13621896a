"""GkeCluster: arguments that it refuses before anything is registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from gke_cluster_args import AUTOPILOT, CEILINGS, SYSTEM_POOL, args

from flexspot.components.gke.cluster import GkeCluster

if TYPE_CHECKING:
    from component_types import Refusal


def ceilings(**changes: Any) -> dict[str, Any]:
    return {"auto_provisioning": {key: value for key, value in {**CEILINGS, **changes}.items() if value is not None}}


def system_pool(**changes: Any) -> dict[str, Any]:
    return {"system_pool": {**SYSTEM_POOL, **changes}}


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"cluster": "c" * 41}, "must be 1 to 40 lower-case letters"),
        ({"project": "acme"}, "project (is 'acme'): must be a project ID"),
        ({"zones": []}, "zones (is []): must be zones of us-central1"),
        ({"zones": ["us-east1-b"]}, "zones (is ['us-east1-b']): must be zones of us-central1"),
        ({"zones": ["us-central1-a", "us-central1-a"]}, "each once"),
        ({"mode": "serverless"}, "mode (is 'serverless'): is not one of the allowed values; allowed: standard, autopilot"),
        ({"access": "public"}, "access (is 'public'): is not one of the allowed values; "),
        ({"release_channel": "REGULAR"}, "release_channel (is 'REGULAR'): is not one of the allowed values; "),
        ({"control_plane_cidr": "172.16.0.0/24"}, "control_plane_cidr (is '172.16.0.0/24'): must be a /28; GKE accepts no other"),
        ({"control_plane_cidr": "everywhere"}, "control_plane_cidr (is 'everywhere'): is not an IPv4 range"),
        (
            {"access": "public_cidrs"},
            "access: public_cidrs needs cidrs, and no other access accepts them; name ranges of your own network, or leave cidrs out",
        ),
        ({"access": "public_cidrs", "cidrs": ["0.0.0.0/0"]}, "cidrs has a range wider than /8"),
        ({"groups_domain": "ml@acme.com"}, "groups_domain (is 'ml@acme.com'): does not have the required form"),
        ({"access": "public_cidrs", "cidrs": ["office"]}, "cidrs.0 (is 'office'): is not an IPv4 range"),
        (
            {"cidrs": ["203.0.113.0/24"]},
            "access: public_cidrs needs cidrs, and no other access accepts them; name ranges of your own network, or leave cidrs out",
        ),
        ({"runner_cidrs": ["0.0.0.0/1"]}, "has a range wider than /8, a large part of the internet"),
        ({"runner_cidrs": ["runner"]}, "runner_cidrs.0 (is 'runner'): is not an IPv4 range"),
        (
            {"access": "dns_iam", "runner_cidrs": ["10.8.0.0/16"]},
            "runner_cidrs (is ['10.8.0.0/16']): is not allowed with access dns_iam, where",
        ),
        ({"max_pods_per_node": 257}, "max_pods_per_node (is 257): should be at most 256"),
        ({"maintenance": {"start_utc": "3 am", "hours": 4}}, "maintenance.start_utc (is '3 am'): does not have the required form"),
        ({"maintenance": {"days": ["sat"]}}, "4 hours on sat are 16 hours in 32 days, and GKE requires 48; use 12 hours"),
        ({"maintenance": {"days": ["saturday"]}}, "maintenance.days.0 (is 'saturday'): is not one of the allowed values; allowed: mon"),
        ({"maintenance": {"start_utc": "03:00", "hours": 3}}, "maintenance.hours (is 3)"),
        ({"system_pool": None}, "system_pool: is required with mode standard, because controllers need nodes without GPUs"),
        (system_pool(machine=""), "system_pool.machine (is empty): must be"),
        (system_pool(min_nodes=0), "system_pool: min_nodes (is 0): should be at least 1"),
        (system_pool(min_nodes=5), "system_pool: min_nodes is above max_nodes"),
        (system_pool(min_nodes=1, max_nodes=1), "system_pool.max_nodes (is 1): must be at least 2"),
        (system_pool(disk_gib=9), "system_pool.disk_gib (is 9): must be at least 10"),
        ({"mode": "autopilot"}, "system_pool (is {'machine': 'e2-standard-4'}): is not allowed with mode autopilot"),
        ({**AUTOPILOT, "auto_provisioning": CEILINGS}, "is not allowed with mode autopilot, where GKE manages all nodes"),
        (ceilings(max_vcpu=None), "auto_provisioning.max_vcpu (is None): must be 1 to 1,000,000"),
        (ceilings(max_memory_gib=None), "auto_provisioning.max_memory_gib (is None)"),
        (ceilings(max_memory_gib=10**18), "auto_provisioning.max_memory_gib (is 1000000000000000000)"),
        (ceilings(accelerators={"nvidia-l4": 0}), "auto_provisioning.accelerators.nvidia-l4 (is 0)"),
        (ceilings(accelerators={"cpu": 8}), "auto_provisioning.accelerators (is 'cpu'): is not GKE's name of a GPU"),
    ],
)
def test_unsafe_or_unlimited_clusters_are_refused_before_anything_is_registered(
    change: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(GkeCluster, "gke", args(**change))
