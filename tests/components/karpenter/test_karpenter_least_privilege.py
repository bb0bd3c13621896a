"""Karpenter's controller can do what it does, and nothing to what is not its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from iam_evaluator import Request, Verdict, decide
from karpenter_args import scope

from components.karpenter.controller_policies import controller_policies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.iam import Document

_TABLE: dict[str, list[dict[str, Any]]] = yaml.safe_load((Path(__file__).parent / "karpenter_requests.yaml").read_text(encoding="utf-8"))

DOCUMENTS = list(controller_policies(scope()).values())


def requests(outcome: str) -> dict[str, Request]:
    return {row["why"]: Request(row["action"], row["resource"], row.get("context", {})) for row in _TABLE[outcome]}


ALLOWED, REFUSED = requests("allowed"), requests("refused")

NEEDED = [(request, key) for request in ALLOWED.values() for key in request.context]

OPTIONAL = {("ec2:CreateTags", "aws:TagKeys"), ("ec2:CreateTags", "aws:RequestTag/eks:eks-cluster-name")}
"""Keys of tags on an instance that exists, which may be missing: whoever writes no tag changes nothing."""


def test_the_table_is_no_stub() -> None:
    assert (len(_TABLE["allowed"]), len(_TABLE["refused"])) == (len(ALLOWED), len(REFUSED)), "each row has its own reason"
    assert min(len(ALLOWED), len(REFUSED)) >= 25


@pytest.mark.parametrize("request_", ALLOWED.values(), ids=ALLOWED)
def test_what_karpenter_does_is_allowed(request_: Request) -> None:
    assert decide(DOCUMENTS, request_) is Verdict.ALLOWED


@pytest.mark.parametrize("request_", REFUSED.values(), ids=REFUSED)
def test_what_karpenter_must_not_do_is_allowed_by_no_statement(request_: Request) -> None:
    assert decide(DOCUMENTS, request_) is Verdict.NOT_ALLOWED


@pytest.mark.parametrize("request_,key", NEEDED, ids=lambda each: each if isinstance(each, str) else each.action)
def test_an_allowed_request_without_one_of_its_tags_or_keys_is_not_allowed(request_: Request, key: str) -> None:
    fewer = replace(request_, context={other: value for other, value in request_.context.items() if other != key})
    of_an_instance_that_exists = "ec2:CreateAction" not in request_.context and (request_.action, key) in OPTIONAL

    assert decide(DOCUMENTS, fewer) is (Verdict.ALLOWED if of_an_instance_that_exists else Verdict.NOT_ALLOWED)


@pytest.mark.parametrize("request_,key", NEEDED, ids=lambda each: each if isinstance(each, str) else each.action)
def test_an_allowed_request_with_another_value_is_not_allowed_unless_any_value_is(request_: Request, key: str) -> None:
    value: str | Sequence[str] = "another" if isinstance(request_.context[key], str) else ["another"]
    changed = replace(request_, context={**request_.context, key: value})
    any_value = key.endswith(("karpenter.sh/nodepool", "karpenter.k8s.aws/ec2nodeclass"))

    assert decide(DOCUMENTS, changed) is (Verdict.ALLOWED if any_value else Verdict.NOT_ALLOWED)


@pytest.mark.parametrize("sid", [statement.get("Sid", "") for document in DOCUMENTS for statement in document["Statement"]])
def test_every_statement_is_needed_by_something_that_karpenter_does(sid: str) -> None:
    without: list[Document] = [
        {"Version": document["Version"], "Statement": [each for each in document["Statement"] if each.get("Sid") != sid]}
        for document in DOCUMENTS
    ]

    assert [why for why, request in ALLOWED.items() if decide(without, request) is not Verdict.ALLOWED] != []


def test_every_action_is_needed_by_something_that_karpenter_does() -> None:
    granted: set[str] = set()
    for document in DOCUMENTS:
        for statement in document["Statement"]:
            action = statement["Action"]
            granted |= {action} if isinstance(action, str) else set(action)

    assert granted == {request.action for request in ALLOWED.values()}


def test_another_clusters_controller_can_do_none_of_what_takes_a_tag_or_a_name() -> None:
    other = list(controller_policies(scope("inference")).values())
    shared = {why for why, request in ALLOWED.items() if decide(other, request) is Verdict.ALLOWED}

    assert {ALLOWED[why].action.partition(":")[2] for why in shared if ALLOWED[why].context} == {
        each
        for each in (ALLOWED[why].action.partition(":")[2] for why in ALLOWED)
        if each.startswith("Describe") and each != "DescribeCluster"
        # The account's one role for Spot is no cluster's.
    } | {"CreateServiceLinkedRole"}
