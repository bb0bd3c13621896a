"""What the shipped cloud stacks say to the clouds: the providers take all of it, but for what is listed as known."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from cloud_resources import MADE_BY_THE_CLOUD, id_forms, kinds
from known_violations import KNOWN, is_known
from program_declarations import as_shipped
from resource_rules import rules_by_type
from rule_checks import Violation, violations

from infra.deployment.resource_ids import resource_ids
from lab.providers.values import UNKNOWN, is_list, is_object

STACKS = ("dev-gke", "prod-gke", "dev-eks", "prod-eks")


def known(value: Any) -> Any:
    """Inputs as the engine sends them, with what is not known yet."""
    if is_object(value):
        return UNKNOWN if value == {"$unknown": True} else {key: known(each) for key, each in value.items()}
    return [known(each) for each in value] if is_list(value) else value


@cache
def refused(stack: str) -> tuple[tuple[str, Violation], ...]:
    """The violations of a stack, each with the name of its resource."""
    made = [each for each in as_shipped(stack).made.values() if each.type.startswith(("gcp:", "aws:"))]
    return tuple((each.name, violation) for each in made for violation in violations(each.type, known(each.inputs)))


@pytest.mark.parametrize("stack", STACKS)
def test_the_provider_takes_every_input_of_a_shipped_stack_but_what_is_listed(stack: str) -> None:
    assert [f"{name}: {violation}" for name, violation in refused(stack) if not is_known(name, violation)] == []


@pytest.mark.parametrize("entry,name", [(entry, name) for entry in KNOWN for name in sorted(entry.names)])
def test_what_is_listed_still_occurs(entry: Any, name: str) -> None:
    """When this fails, something was mended: take it off the list."""
    assert any(entry.covers(found, violation) for stack in STACKS for found, violation in refused(stack) if found == name)


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
