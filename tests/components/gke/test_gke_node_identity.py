"""GkeNodeIdentity: an account of the nodes' own, with what nodes need and no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from pulumi.provider.experimental.analyzer import Analyzer

from components.gke.system_nodes import GkeNodeIdentity, GkeNodeIdentityArgs

ACCOUNT = "gcp:serviceaccount/account:Account"
MEMBER = "gcp:projects/iAMMember:IAMMember"

Register = Callable[[Callable[[], object]], Any]


class Cloud(pulumi.runtime.Mocks):
    """Answers what Google Cloud adds to an account."""

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        inputs: dict[str, Any] = dict(args.inputs)
        if args.typ == ACCOUNT:
            inputs["email"] = f"{inputs['accountId']}@{inputs['project']}.iam.gserviceaccount.com"
        return f"{args.name}-id", inputs

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        raise AssertionError(f"components invoke nothing; {args.token} was called")


def args(**changes: Any) -> GkeNodeIdentityArgs:
    arguments: GkeNodeIdentityArgs = {"project": "acme-ai-prod", "account_id": "flexspot-nodes"}
    arguments.update(changes)  # pyrefly: ignore[no-matching-overload] -- what is wrong on purpose, too
    return arguments


def test_the_account_has_the_roles_that_nodes_need_and_no_other(register: Register) -> None:
    members = register(lambda: GkeNodeIdentity("nodes", args())).of(MEMBER)

    # In which order a mock is asked for them is chance.
    assert sorted(each["role"] for each in members) == [
        "roles/artifactregistry.reader",
        "roles/container.defaultNodeServiceAccount",
        # Google's page on image streaming asks for it of every account but the default one.
        "roles/serviceusage.serviceUsageConsumer",
    ]
    assert {each["project"] for each in members} == {"acme-ai-prod"}


def test_the_account_is_named_and_described(register: Register) -> None:
    [account] = register(lambda: GkeNodeIdentity("nodes", args(description="Nodes of prod"))).of(ACCOUNT)

    assert account == {
        "project": "acme-ai-prod",
        "accountId": "flexspot-nodes",
        "displayName": "flexspot-nodes",
        "description": "Nodes of prod",
    }


def test_the_description_says_what_the_account_is_for_by_default(register: Register) -> None:
    [account] = register(lambda: GkeNodeIdentity("nodes", args())).of(ACCOUNT)

    assert account["description"] == "Nodes of GKE"


def test_an_id_that_is_too_long_is_cut_with_a_hash_of_the_whole(register: Register) -> None:
    def account_id(written: str) -> str:
        [account] = register(lambda: GkeNodeIdentity("nodes", args(account_id=written))).of(ACCOUNT)
        return account["accountId"]

    prod, dev = account_id("a-cluster-with-a-very-long-name-prod"), account_id("a-cluster-with-a-very-long-name-dev")

    assert len(prod) == 30
    assert prod.startswith("a-cluster-with-a-very")
    assert prod != dev
    assert prod == account_id("a-cluster-with-a-very-long-name-prod")


def test_the_email_is_the_accounts() -> None:
    pulumi.runtime.set_mocks(Cloud(), preview=False)
    seen: list[str] = []

    @pulumi.runtime.test
    def program() -> pulumi.Output[None]:
        return GkeNodeIdentity("nodes", args()).email.apply(seen.append)

    program()

    assert seen == ["flexspot-nodes@acme-ai-prod.iam.gserviceaccount.com"]


def test_every_resource_is_the_components_child_and_named_after_it(register: Register) -> None:
    parents: dict[str, pulumi.Resource | None] = {}
    made: list[GkeNodeIdentity] = []

    def note(resource: pulumi.ResourceTransformationArgs) -> None:
        parents[resource.name] = resource.opts.parent

    def declare() -> None:
        made.append(GkeNodeIdentity("nodes", args(), pulumi.ResourceOptions(transformations=[note])))

    register(declare)

    assert parents == {"nodes": None} | dict.fromkeys(
        ["nodes-account", "nodes-node", "nodes-image-reader", "nodes-image-streamer"], made[0]
    )


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"account_id": "nodes"}, "account_id is 'nodes'; it must be 6 to 30 lower-case letters"),
        ({"account_id": "1-cluster"}, "account_id is '1-cluster'; it must be"),
        ({"account_id": "Flexspot"}, "account_id is 'Flexspot'; it must be"),
        ({"project": "acme"}, "project is 'acme'; it must be a project's id"),
    ],
)
def test_what_google_cloud_would_refuse_is_refused_before_anything_is_registered(
    change: dict[str, Any], problem: str, register: Register
) -> None:
    refused: list[str] = []

    def declare() -> None:
        with pytest.raises(ValueError, match="GkeNodeIdentity nodes:") as error:
            GkeNodeIdentity("nodes", args(**change))
        refused.append(str(error.value))

    registered = register(declare)

    assert problem in refused[0]
    assert registered.resources == []


def test_pulumis_component_host_accepts_the_arguments_and_knows_which_are_optional() -> None:
    inputs = Analyzer("flexspot").analyze([GkeNodeIdentity])["component_definitions"]["GkeNodeIdentity"].inputs

    assert {name for name, each in inputs.items() if not each.optional} == {"project", "accountId"}
