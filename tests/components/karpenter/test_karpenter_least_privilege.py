"""Permissions of Karpenter's controller: its own requests are allowed, and changes of other resources are not, as principalmapper decides.

test_karpenter_controller_policies.py tests each statement.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from iam_judge import Request, decided_otherwise, listed
from karpenter_args import scope

from flexspot.components.karpenter.controller_policies import controller_policies

if TYPE_CHECKING:
    from collections.abc import Sequence

_TABLE: dict[str, list[dict[str, Any]]] = yaml.safe_load((Path(__file__).parent / "karpenter_requests.yaml").read_text(encoding="utf-8"))

DOCUMENTS = list(controller_policies(scope()).values())


def requests(outcome: str) -> dict[str, Request]:
    return {row["why"]: Request(row["action"], row["resource"], row.get("context", {})) for row in _TABLE[outcome]}


ALLOWED, REFUSED = requests("allowed"), requests("refused")

NEEDED = [(request, key) for request in ALLOWED.values() for key in request.context]

OPTIONAL = {("ec2:CreateTags", "aws:TagKeys"), ("ec2:CreateTags", "aws:RequestTag/eks:eks-cluster-name")}
"""Keys of tags on existing instances, which may be missing: a request that sets no tag changes nothing."""


NIGHTLY = pytest.mark.nightly(tested_by="test_statements_are_those_of_karpenters_own_template_and_one_for_the_spot_role")


def test_every_action_is_needed_by_something_that_karpenter_does() -> None:
    granted = {action for document in DOCUMENTS for statement in document["Statement"] for action in listed(statement["Action"])}

    assert granted == {request.action for request in ALLOWED.values()}


@NIGHTLY
def test_karpenters_requests_are_allowed_and_forbidden_ones_are_not() -> None:
    assert min(len(ALLOWED), len(REFUSED)) >= 25
    assert decided_otherwise(DOCUMENTS, "allowed", [*ALLOWED.values()]) == []
    assert decided_otherwise(DOCUMENTS, "none", [*REFUSED.values()]) == []


@NIGHTLY
def test_an_allowed_request_without_one_of_its_tags_or_keys_is_not_allowed() -> None:
    fewer: dict[str, list[Request]] = {"allowed": [], "none": []}
    for request, key in NEEDED:
        of_an_instance_that_exists = "ec2:CreateAction" not in request.context and (request.action, key) in OPTIONAL
        context = {other: value for other, value in request.context.items() if other != key}
        fewer["allowed" if of_an_instance_that_exists else "none"].append(replace(request, context=context))

    assert {decided: decided_otherwise(DOCUMENTS, decided, requests) for decided, requests in fewer.items()} == {"allowed": [], "none": []}


@NIGHTLY
def test_an_allowed_request_with_another_value_is_not_allowed_unless_any_value_is() -> None:
    changed: dict[str, list[Request]] = {"allowed": [], "none": []}
    for request, key in NEEDED:
        value: str | Sequence[str] = "another" if isinstance(request.context[key], str) else ["another"]
        any_value = key.endswith(("karpenter.sh/nodepool", "karpenter.k8s.aws/ec2nodeclass"))
        changed["allowed" if any_value else "none"].append(replace(request, context={**request.context, key: value}))

    assert {decided: decided_otherwise(DOCUMENTS, decided, requests) for decided, requests in changed.items()} == {
        "allowed": [],
        "none": [],
    }


@NIGHTLY
def test_another_clusters_controller_can_do_nothing_that_needs_a_tag_or_a_name() -> None:
    other = list(controller_policies(scope("inference")).values())
    refused = decided_otherwise(other, "allowed", [*ALLOWED.values()])

    shared = {each.action.partition(":")[2] for each in ALLOWED.values() if each.context and each not in refused}
    described = {each.action.partition(":")[2] for each in ALLOWED.values() if ":Describe" in each.action}
    # The account's only role for Spot belongs to no cluster.
    assert shared == described - {"DescribeCluster"} | {"CreateServiceLinkedRole"}
