"""What the shipped cloud stacks say to the clouds: the providers take all of it."""

from __future__ import annotations

import pytest
from cloud_resources import MADE_BY_THE_CLOUD, id_forms, kinds
from declared_inputs import refused_inputs
from program_declarations import as_shipped
from resource_rules import rules_by_type
from silent_defaults import silent_defaults

from infra.deployment.resource_ids import resource_ids

STACKS = ("dev-gke", "prod-gke", "dev-eks", "prod-eks")


@pytest.mark.parametrize("stack", STACKS)
def test_the_provider_takes_every_input_of_a_shipped_stack(stack: str) -> None:
    assert refused_inputs(as_shipped(stack).made.values()) == []


def test_what_the_providers_send_in_our_place_was_looked_at() -> None:
    """A default of a provider is sent as if the program said it; where GKE chooses well by itself, pd-standard did not."""
    sent = silent_defaults(each for stack in STACKS for each in as_shipped(stack).made.values())

    assert sent == {
        "aws:cloudwatch/eventRule:EventRule": {"event_bus_name": "default"},
        "aws:cloudwatch/eventTarget:EventTarget": {"event_bus_name": "default"},
        "aws:ec2/natGateway:NatGateway": {"connectivity_type": "public"},
        "aws:ec2/vpc:Vpc": {"instance_tenancy": "default"},
        "aws:iam/policy:Policy": {"path": "/"},
        "aws:iam/role:Role": {"max_session_duration": 3600, "path": "/"},
        "aws:kms/key:Key": {"customer_master_key_spec": "SYMMETRIC_DEFAULT", "is_enabled": True, "key_usage": "ENCRYPT_DECRYPT"},
        # Karpenter's interruption queue: its messages are small, and handled within seconds.
        "aws:sqs/queue:Queue": {"max_message_size": 262144, "visibility_timeout_seconds": 30},
        "gcp:compute/network:Network": {"network_firewall_policy_enforcement_order": "AFTER_CLASSIC_FIREWALL"},
        # Google's own timeouts of NAT, in seconds.
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


@pytest.mark.parametrize("stack", STACKS)
def test_every_type_of_a_shipped_stack_is_known_to_the_stand_in_clouds(stack: str) -> None:
    types = {each.type for each in as_shipped(stack).made.values() if each.type.startswith(("gcp:", "aws:"))}

    assert types - kinds().keys() == set()
    assert types - rules_by_type().keys() == set()


def test_the_program_finds_resources_again_by_the_ids_that_the_clouds_give() -> None:
    """Two tables, written apart from each other: the product's, by which an interrupted `up` is settled, and the stand-in clouds'."""
    own, product = {token: comparable(form) for token, form in id_forms().items()}, resource_ids()

    assert {token: comparable(form) for token, form in product.items() if token in own} == {
        token: own[token] for token in product if token in own
    }
    assert {token for token, form in id_forms().items() if form != MADE_BY_THE_CLOUD} - product.keys() == set()


def comparable(form: str) -> str:
    return form.replace("{project_host}", "{project}").replace("{dns_suffix}", "amazonaws.com")


def test_an_id_with_a_checksum_is_the_providers_own() -> None:
    """internal/service/ec2/vpc_route_test.go of hashicorp/aws has ids of this form."""
    assert kinds()["aws:ec2/route:Route"].new_id({"routeTableId": "rtb-1", "destinationCidrBlock": "0.0.0.0/0"}) == "r-rtb-11080289494"
