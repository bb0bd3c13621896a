"""The table of APIs and roles, compared with the resources that stacks declare: the listed needs are enough to create them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from autopilot_settings import autopilot_settings
from program_declarations import declared, shipped
from test_shipped_inputs import secured

from flexspot.capacity.catalog.account_needs import apis_for, resource_needs, roles_for
from flexspot.capacity.plan.needs import parts_of
from flexspot.capacity.settings.platform import GkeSettings
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.lab.providers.cloud_rules.resource_rules import rules_by_type

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

THERE = {"network": {"existing_network": "shared", "existing_subnetwork": "nodes"}}

STACKS: dict[str, Callable[[], dict[str, Any]]] = {
    "dev-gke": lambda: shipped("dev-gke"),
    "prod-gke": lambda: shipped("prod-gke"),
    "with a work queue and keys": secured,
    "on Autopilot": autopilot_settings,
    "in a network that is there": lambda: shipped("dev-gke", **THERE),
    "on a cluster that is there": lambda: shipped("dev-gke", cluster={"existing": "theirs"}),
    "with direct grants": lambda: shipped("dev-gke", cluster={**shipped("dev-gke")["cluster"], "team_identity": "direct"}),
}


@pytest.mark.parametrize("stack", STACKS)
def test_every_declared_resource_is_covered_by_a_listed_api_and_role(stack: str) -> None:
    document = STACKS[stack]()
    settings = parse_settings(document, "stack")
    assert isinstance(settings, GkeSettings)
    parts = parts_of(settings)
    apis, roles = ({each.name for each in needed(parts)} for needed in (apis_for, roles_for))

    types = {each.type for each in declared("stack", document).made.values() if each.type.startswith("gcp:")}
    assert types - resource_needs().keys() == set(), "name the API and the role in flexspot/capacity/catalog/gcp_project.yaml"
    lacking = {token for token in types if resource_needs()[token].api not in apis or resource_needs()[token].role not in roles}
    assert lacking == set()


def test_every_known_google_type_has_its_api_and_role() -> None:
    assert {each for each in rules_by_type() if each.startswith("gcp:")} == resource_needs().keys()
