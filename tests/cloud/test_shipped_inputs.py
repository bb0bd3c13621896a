"""The providers accept all inputs of the shipped cloud stacks."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cloud_resources import MADE_BY_THE_CLOUD, id_forms
from declared_inputs import refused_inputs
from program_declarations import as_shipped, declared, shipped

from flexspot.infra.deployment.resource_ids import resource_ids
from flexspot.lab.providers.cloud_rules.resource_rules import rules_by_type
from flexspot.lab.providers.values import UNKNOWN, is_list, is_object, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from program_declarations import Declared

    from flexspot.lab.providers.cloud_rules.resource_rules import ResourceRules

STACKS = ("dev-gke", "prod-gke", "dev-eks", "prod-eks")


@pytest.mark.slow
@pytest.mark.parametrize("stack", STACKS)
def test_the_provider_accepts_every_input_of_a_shipped_stack(stack: str) -> None:
    assert refused_inputs(as_shipped(stack).made.values()) == []


KEY = "projects/acme-ai-prod/locations/us-central1/keyRings/platform/cryptoKeys/"


def secured() -> dict[str, Any]:
    """Return prod-gke with all security options, a confidential pool, a sub-block of another project's reservation, and a work queue."""
    settings = shipped("prod-gke")
    settings["cluster"]["security"] = {
        "secrets_kms_key": f"{KEY}etcd",
        "boot_disk_kms_key": f"{KEY}disks",
        "posture": "basic",
        "vulnerability_scanning": "disabled",
        "binary_authorization": "project_singleton_policy_enforce",
    }
    settings["cluster"]["system_pool"] = {"machine": "n2d-standard-4", "confidential_nodes": "sev_snp", "min_nodes": 3, "max_nodes": 6}
    settings["gpu_quotas"]["nvidia-h100-80gb"]["preemptible"] = 65
    settings["teams"][0]["work_queue"] = {}
    own = {"capacity_type": "spot", "max_nodes": 1, "serves": ["interactive"], "zones": ["us-central1-a"]}
    part = {"name": "shared", "project": "acme-capacity", "block": "one", "sub_block": "one-sub-1"}
    settings["pools"] += [
        {"name": "h100-secret", "machine": "a3-highgpu-1g", "confidential_nodes": "tdx", **own},
        {"name": "gb200", "machine": "a4x-highgpu-4g", **own, "capacity_type": "reserved", "reservation": part, "serves": ["training"]},
        {"name": "h200-bare", "machine": "a3-ultragpu-8g-nolssd", **own, "boot_disk_kms_key": f"{KEY}own", "zones": ["us-central1-b"]},
    ]
    return settings


@pytest.mark.slow
def test_the_provider_accepts_every_input_of_a_secured_stack_with_machines_of_every_kind() -> None:
    made = declared("prod-gke", secured()).made

    assert refused_inputs(made.values()) == []
    pools = {each.inputs["name"]: each.inputs["nodeConfig"] for each in made.values() if each.type == "gcp:container/nodePool:NodePool"}
    assert {name for name, node in pools.items() if node.get("bootDiskKmsKey") == f"{KEY}disks"} == pools.keys() - {"h200-bare"}
    assert pools["h200-bare"]["bootDiskKmsKey"] == f"{KEY}own"
    assert [each["key"] for each in pools["gb200"]["taints"]] == ["nvidia.com/gpu", "flexspot.dev/class"], "GKE taints Arm nodes itself"


BETA = "These resources are in beta, and should be used with the terraform-provider-google-beta provider"
"""The SDK's note on a resource that Terraform's google provider does not have."""


@pytest.mark.slow
def test_only_one_resource_needs_googles_beta_provider_and_the_guide_says_so() -> None:
    """test_google_models.py checks in the API's own description that no field exists only in beta."""
    stacks = [*(each.made for each in map(as_shipped, ("dev-gke", "prod-gke"))), declared("prod-gke", secured()).made]
    made = [each for stack in stacks for each in stack.values() if each.type.startswith("gcp:")]

    beta = {token for token in {each.type for each in made} if BETA in sdk_text(token)}
    assert beta == {"gcp:projects/serviceIdentity:ServiceIdentity"}
    guide = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "gke.md").read_text(encoding="utf-8")
    assert all(f"| `{token}` |" in guide for token in beta)


def sdk_text(token: str) -> str:
    """Return the SDK's source of a resource, which has its documentation."""
    _, path, name = token.split(":")
    return " ".join(inspect.getsource(getattr(importlib.import_module(f"pulumi_gcp.{path.partition('/')[0]}"), name)).split())


NOTHING = (None, "", 0, False, [], {})
"""Defaults that request nothing."""


def silent_defaults(resources: Iterable[Declared]) -> dict[str, dict[str, Any]]:
    """Return the defaults that are sent for at least one resource, by type and Terraform path, except those that request nothing."""
    found: dict[str, dict[str, Any]] = {}
    for each in resources:
        rules = rules_by_type().get(each.type)
        for path, default in _sent(rules, "", plain(each.inputs)) if rules else ():
            found.setdefault(each.type, {})[path] = default
    return {token: dict(sorted(found[token].items())) for token in sorted(found)}


def _sent(rules: ResourceRules, block: str, values: Any) -> Iterator[tuple[str, Any]]:
    for name, attribute in rules.inside(block).items():
        value, default = values.get(name), attribute.facts.get("default")
        if value is None and default not in NOTHING:
            yield attribute.path, default
        if attribute.is_block and value is not None and value is not UNKNOWN:
            for item in value if is_list(value) else [value]:
                if is_object(item):
                    yield from _sent(rules, attribute.path, item)


def test_every_default_that_the_providers_send_has_been_reviewed() -> None:
    """A provider's default is sent as if the program set it. pd-standard was a bad one, where GKE chooses well by itself."""
    sent = silent_defaults(each for stack in STACKS for each in as_shipped(stack).made.values())

    assert sent == {
        "aws:cloudwatch/eventRule:EventRule": {"event_bus_name": "default"},
        "aws:cloudwatch/eventTarget:EventTarget": {"event_bus_name": "default"},
        "aws:ec2/natGateway:NatGateway": {"connectivity_type": "public"},
        "aws:ec2/vpc:Vpc": {"instance_tenancy": "default"},
        "aws:iam/policy:Policy": {"path": "/"},
        "aws:iam/role:Role": {"max_session_duration": 3600, "path": "/"},
        "aws:kms/key:Key": {"customer_master_key_spec": "SYMMETRIC_DEFAULT", "is_enabled": True, "key_usage": "ENCRYPT_DECRYPT"},
        # Karpenter's interruption queue has small messages, handled within seconds.
        "aws:sqs/queue:Queue": {"max_message_size": 262144, "visibility_timeout_seconds": 30},
        "gcp:compute/network:Network": {"network_firewall_policy_enforcement_order": "AFTER_CLASSIC_FIREWALL"},
        # Google's own NAT timeouts, in seconds.
        "gcp:compute/routerNat:RouterNat": {
            "icmp_idle_timeout_sec": 30,
            "tcp_established_idle_timeout_sec": 1200,
            "tcp_time_wait_timeout_sec": 120,
            "tcp_transitory_idle_timeout_sec": 30,
            "type": "PUBLIC",
            "udp_idle_timeout_sec": 30,
        },
        "gcp:container/cluster:Cluster": {"ip_allocation_policy.stack_type": "IPV4"},
    }


def test_the_program_finds_resources_by_the_ids_that_the_clouds_assign() -> None:
    """Compares two independent tables: the product's, by which it repairs an interrupted `up`, and the stand-in clouds'."""
    own, product = {token: comparable(form) for token, form in id_forms().items()}, resource_ids()

    assert {token: comparable(form) for token, form in product.items() if token in own} == {
        token: own[token] for token in product if token in own
    }
    assert {token for token, form in id_forms().items() if form != MADE_BY_THE_CLOUD} - product.keys() == set()


def comparable(form: str) -> str:
    return form.replace("{project_host}", "{project}").replace("{dns_suffix}", "amazonaws.com")
