"""What the shipped cloud stacks say to the clouds: the providers take all of it."""

from __future__ import annotations

import pytest
from cloud_resources import MADE_BY_THE_CLOUD, id_forms, kinds
from declared_inputs import refused_inputs
from program_declarations import as_shipped
from resource_rules import rules_by_type

from infra.deployment.resource_ids import resource_ids

STACKS = ("dev-gke", "prod-gke", "dev-eks", "prod-eks")


@pytest.mark.parametrize("stack", STACKS)
def test_the_provider_takes_every_input_of_a_shipped_stack(stack: str) -> None:
    assert refused_inputs(as_shipped(stack).made.values()) == []


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
