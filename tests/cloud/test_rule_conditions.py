"""Every condition in the rule files on which a provider replaces or rejects is applied here, or has a reason why it cannot occur."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from auto_mode_settings import auto_mode_settings
from program_declarations import as_shipped, declared, shipped

from flexspot.lab.providers.cloud_rules.resource_rules import rules_by_type
from flexspot.lab.providers.cloud_rules.rule_differences import WHEN

pytestmark = pytest.mark.slow

NEVER = {
    ("aws:ec2/natGateway:NatGateway", "secondary_private_ip_address_count"): "no gateway is private",
    ("aws:ec2/subnet:Subnet", "ipv6_cidr_block"): "nothing has IPv6",
    ("aws:eks/cluster:Cluster", "compute_config.node_role_arn"): "a cluster in Auto Mode names no role: each NodeClass has its own",
    ("aws:fsx/lustreFileSystem:LustreFileSystem", "per_unit_storage_throughput"): "efa_enabled is not set, with which alone it replaces",
    (
        "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
        "expected_bucket_owner",
    ): "no bucket's owner is named",
    ("aws:s3/bucketVersioning:BucketVersioning", "expected_bucket_owner"): "no bucket's owner is named",
    ("gcp:container/cluster:Cluster", "dns_config.additive_vpc_scope_dns_domain"): "Autopilot has no DNS domain of ours",
    ("gcp:container/cluster:Cluster", "enable_k8s_beta_apis.enabled_apis"): "no beta API is switched on",
    ("gcp:storage/bucket:Bucket", "retention_policy.is_locked"): "no bucket has a retention policy",
}
"""Conditions that cannot occur here, each with the reason."""


@cache
def used() -> dict[str, list[dict[str, Any]]]:
    """Return the inputs of every AWS and Google type that a stack declares, including file systems, work queues and Auto Mode."""
    first, *others = shipped("dev-eks")["teams"]
    more = {
        "storage": {"checkpoints": "efs", "datasets": "lustre"},
        "controllers": {"load_balancer_controller": {"install": True}},
        "teams": [{**first, "work_queue": {}}, *others],
    }
    autopilot = shipped("dev-gke")
    stacks = [as_shipped(stack) for stack in ("dev-gke", "prod-gke")]
    stacks += [declared("dev-eks", shipped("dev-eks", **more)), declared("auto", auto_mode_settings())]
    stacks.append(declared("dev-gke", {**autopilot, "storage": autopilot.get("storage", {}) | {"checkpoint_days": 3}}))
    found: dict[str, list[dict[str, Any]]] = {}
    for stack in stacks:
        for each in stack.made.values():
            if each.type in rules_by_type():
                found.setdefault(each.type, []).append(each.inputs)
    return found


def conditions() -> set[tuple[str, str]]:
    """Return the attributes of these types that force a replacement only in some cases."""
    rules = [rules_by_type()[token] for token in used()]
    return {(each.token, path) for each in rules for path, attribute in each.attributes.items() if "force_new_when" in attribute.facts}


def test_every_condition_on_which_a_provider_replaces_is_applied_or_cannot_occur() -> None:
    assert len(conditions()) > 20
    assert conditions() - WHEN.keys() == NEVER.keys() & conditions()
    assert NEVER.keys() - conditions() == set(), "a reason without a condition"
