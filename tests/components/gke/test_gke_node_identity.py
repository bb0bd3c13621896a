"""GkeNodeIdentity: a separate account for nodes, with only the roles that they need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexspot.components.gke.system_nodes import GkeNodeIdentity, GkeNodeIdentityArgs

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register

ACCOUNT = "gcp:serviceaccount/account:Account"


def args(**changes: Any) -> GkeNodeIdentityArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {"project": "acme-ai-prod", "account_id": "flexspot-nodes"} | changes


def test_the_email_is_the_accounts(outputs: Outputs) -> None:
    assert outputs(lambda: GkeNodeIdentity("nodes", args())) == {"email": "flexspot-nodes@acme-ai-prod.iam.gserviceaccount.com"}


def test_the_account_only_has_the_roles_that_nodes_need(register: Register) -> None:
    members = register(lambda: GkeNodeIdentity("nodes", args())).of("gcp:projects/iAMMember:IAMMember")

    assert {each["role"] for each in members} == {
        "roles/artifactregistry.reader",
        "roles/container.defaultNodeServiceAccount",
        # Google's page on image streaming requires it for every account except the default one.
        "roles/serviceusage.serviceUsageConsumer",
    }
    assert {(each["project"], each["member"]) for each in members} == {
        ("acme-ai-prod", "serviceAccount:flexspot-nodes@acme-ai-prod.iam.gserviceaccount.com")
    }


def test_the_account_is_named_and_described(register: Register) -> None:
    [account] = register(lambda: GkeNodeIdentity("nodes", args(description="Nodes of prod"))).of(ACCOUNT)

    assert account == {
        "project": "acme-ai-prod",
        "accountId": "flexspot-nodes",
        "displayName": "flexspot-nodes",
        "description": "Nodes of prod",
    }


def test_an_id_that_is_too_long_is_cut_with_a_hash_of_the_whole(register: Register) -> None:
    def account_id(written: str) -> str:
        [account] = register(lambda: GkeNodeIdentity("nodes", args(account_id=written))).of(ACCOUNT)
        return account["accountId"]

    prod, dev = account_id("a-cluster-with-a-very-long-name-prod"), account_id("a-cluster-with-a-very-long-name-dev")

    assert len(prod) == 30
    assert prod.startswith("a-cluster-with-a-very")
    assert prod != dev
    assert prod == account_id("a-cluster-with-a-very-long-name-prod")


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"account_id": "nodes"}, "account_id (is 'nodes'): must be 6 to 30 lower-case letters"),
        ({"account_id": "1-cluster"}, "account_id (is '1-cluster'): must be"),
        ({"project": "acme"}, "project (is 'acme'): must be a project ID"),
    ],
)
def test_arguments_that_google_cloud_would_reject_are_refused_before_anything_is_registered(
    change: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(GkeNodeIdentity, "nodes", args(**change))
