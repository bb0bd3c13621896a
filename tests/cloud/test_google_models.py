"""Google's own descriptions of its APIs have nothing against the requests of the GKE stacks, and their judge sees what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import stack_changes
from autopilot_settings import autopilot_settings
from google_models import document, refused_of, refused_requests, requests
from program_declarations import as_shipped, declared
from setting_edits import edits_of
from test_shipped_inputs import secured

from lab.providers.cloud_rules.resource_rules import rules_by_type

if TYPE_CHECKING:
    from program_declarations import Declarations

pytestmark = pytest.mark.thorough

POOL = "gcp:container/nodePool:NodePool"
CLUSTER = "gcp:container/cluster:Cluster"


@pytest.mark.parametrize("stack", ["dev-gke", "prod-gke"])
def test_the_apis_have_every_field_and_word_of_a_shipped_stack(stack: str) -> None:
    assert refused_requests(as_shipped(stack).made.values()) == []


def test_the_apis_have_every_field_and_word_of_a_secured_stack_and_of_one_on_autopilot() -> None:
    """v1 as well as v1beta1: nothing that is set is in beta alone, however deep it stands."""
    assert refused_requests(declared("prod-gke", secured()).made.values()) == []
    assert refused_requests(declared("dev-gke", autopilot_settings()).made.values()) == []
    assert {"container.v1", "container.v1beta1"} == {*requests()[CLUSTER].apis, *requests()[POOL].apis}


def test_what_any_edit_of_a_setting_leads_to_is_refused_in_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """All edits are played for the tables of test_stack_changes.py, in which such a row would be another than the reviewed one."""
    edit = edits_of("gke", "pools.*.max_nodes")[0]
    made = declared(edit.stack, edit.applied(), there=True)
    assert "no API has" not in stack_changes.row_of(edit)

    next(each for each in made.made.values() if each.type == POOL).inputs["nodeConfig"]["spot"] = "yes"

    def planted(_stack: str, _settings: dict[str, Any], *, there: bool) -> Declarations:
        assert there
        return made

    monkeypatch.setattr(stack_changes, "declared", planted)
    [refused] = {each.partition(": ")[2].partition(" ")[2] for each in stack_changes.row_of(edit)["no API has"]}
    assert refused == "nodeConfig.spot: is 'yes', not of type boolean"


def test_every_type_of_google_that_has_rules_of_its_provider_has_its_request() -> None:
    assert {each for each in rules_by_type() if each.startswith("gcp:")} == requests().keys()


@pytest.mark.parametrize(
    "token,inputs,said",
    [
        (POOL, {"nodeConfig": {"guestAccelerators": [{"counts": 1}]}}, "has no field for nodeConfig.guestAccelerators.counts"),
        (POOL, {"upgradeSettings": {"strategy": "ROLLING"}}, "upgradeSettings.strategy: is 'ROLLING'; allowed: "),
        (POOL, {"nodeConfig": {"spot": "yes"}}, "nodeConfig.spot: is 'yes', not of type boolean"),
        (POOL, {"placementPolicy": {"type": "CLOSE"}}, "placementPolicy.type: is 'CLOSE'; allowed: TYPE_UNSPECIFIED, COMPACT"),
        (POOL, {"nodeConfig": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}}, "is 'NoSchedule'; allowed: "),
        (CLUSTER, {"releaseChannel": {"channel": "stable"}}, "is 'stable'; allowed: "),
        (CLUSTER, {"clusterAutoscaling": {"resourceLimits": [{"maximum": "many"}]}}, "maximum: is 'many', not of type string"),
        (CLUSTER, {"clusterTelemetry": {"type": "ENABLED"}}, "container.v1 has no field for clusterTelemetry"),
        ("gcp:compute/routerNat:RouterNat", {"natIpAllocateOption": "AUTO"}, "allowed: AUTO_ONLY, MANUAL_ONLY"),
        ("gcp:redis/instance:Instance", {}, "nobody has said"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_request_is_said(token: str, inputs: dict[str, Any], said: str) -> None:
    problems = refused_of(token, inputs)

    assert any(said in each for each in problems), problems


def test_a_field_of_v1beta1_alone_is_refused_by_v1_alone() -> None:
    problems = refused_of(CLUSTER, {"clusterTelemetry": {"type": "ENABLED"}})

    assert problems == ["container.v1 has no field for clusterTelemetry"]


def test_the_documents_are_newer_than_the_rules_of_the_provider() -> None:
    """Whoever pins an older library judges by older APIs."""
    assert all(document(api)["revision"] >= "20260821" for api in ("container.v1", "container.v1beta1", "compute.v1"))
