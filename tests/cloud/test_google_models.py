"""The clouds' API descriptions have no objection to the stacks' requests: Google's discovery documents, and AWS's in botocore."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import request_judge
from autopilot_settings import autopilot_settings
from google_models import document, refused_requests, requests
from organisation_stack import everything_settings
from program_declarations import as_shipped, declared
from test_shipped_inputs import secured

if TYPE_CHECKING:
    from collections.abc import Callable

    from program_declarations import Declarations

pytestmark = pytest.mark.slow

STACKS: dict[str, Callable[[], Declarations]] = {
    "dev-gke": lambda: as_shipped("dev-gke"),
    "secured": lambda: declared("prod-gke", secured()),
    "on Autopilot": lambda: declared("dev-gke", autopilot_settings()),
}


@pytest.mark.parametrize("stack", STACKS)
def test_googles_apis_have_every_field_and_enum_value_of_a_stack(stack: str) -> None:
    """v1 as well as v1beta1: no field that is set exists only in beta, at any depth."""
    assert refused_requests(STACKS[stack]().made.values()) == []
    assert {"container.v1", "container.v1beta1"} == set(requests()["gcp:container/cluster:Cluster"].apis)


def test_awss_models_accept_every_request_of_a_stack_with_everything() -> None:
    assert request_judge.refused_requests(declared("prod-eks", everything_settings()).made.values()) == []


def test_googles_documents_are_newer_than_the_rules_of_the_provider() -> None:
    """Pinning an older library would judge by older APIs."""
    assert all(document(api)["revision"] >= "20260821" for api in ("container.v1", "container.v1beta1", "compute.v1"))
