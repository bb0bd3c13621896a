"""Our evaluator of IAM documents and one that we did not write decide alike, about every request that Karpenter's policies meet."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from foreign_iam import foreign_decision
from iam_evaluator import Request, decide
from test_karpenter_least_privilege import ALLOWED, DOCUMENTS, NEEDED, REFUSED

if TYPE_CHECKING:
    from components.iam import Document

pytestmark = pytest.mark.thorough

FEWER = [replace(each, context={key: value for key, value in each.context.items() if key != left_out}) for each, left_out in NEEDED]
OTHERS = [
    replace(each, context={**each.context, key: "another" if isinstance(each.context[key], str) else ["another"]}) for each, key in NEEDED
]


def differing(requests: list[Request], documents: list[Document]) -> list[str]:
    return [
        f"{each.action} on {each.resource} with {each.context}: {decide(documents, each)}, {foreign_decision(documents, each)}"
        for each in requests
        if decide(documents, each) is not foreign_decision(documents, each)
    ]


def test_both_allow_what_karpenter_does_and_refuse_what_it_must_not_do() -> None:
    assert differing([*ALLOWED.values(), *REFUSED.values()], DOCUMENTS) == []


def test_both_want_every_tag_and_key_with_its_value() -> None:
    assert differing([*FEWER, *OTHERS], DOCUMENTS) == []


@pytest.mark.parametrize("effect", ["Allow", "Deny"])
@pytest.mark.parametrize(
    "condition",
    [
        {"StringEquals": {"aws:RequestTag/a": "1"}},
        {"StringNotEquals": {"aws:RequestTag/a": ["1", "2"]}},
        {"StringLike": {"aws:RequestTag/a": "1*"}},
        {"StringEqualsIfExists": {"aws:RequestTag/a": "1"}},
        {"Bool": {"aws:SecureTransport": "false"}},
        {"BoolIfExists": {"aws:SecureTransport": "false"}},
        {"NumericLessThan": {"s3:TlsVersion": "1.2"}},
        {"ArnLike": {"aws:SourceArn": "arn:aws:sqs:eu-west-1:111122223333:*"}},
        {"Null": {"aws:RequestTag/a": "true"}},
        {"ForAllValues:StringEquals": {"aws:TagKeys": ["a", "b"]}},
        {"ForAnyValue:StringEquals": {"aws:TagKeys": ["a", "b"]}},
    ],
    ids=lambda each: next(iter(each)),
)
def test_both_read_each_operator_that_the_documents_use_alike(effect: str, condition: dict[str, dict[str, str | list[str]]]) -> None:
    statement = {"Effect": effect, "Action": "s3:Get*", "Resource": "arn:aws:s3:::b/*", "Condition": condition}
    document: Document = {"Version": "2012-10-17", "Statement": [statement]}
    contexts: list[dict[str, str | list[str]]] = [
        {},
        *({"aws:RequestTag/a": value} for value in ("1", "12", "3")),
        *({"aws:SecureTransport": value} for value in ("true", "false")),
        *({"s3:TlsVersion": value} for value in ("1.1", "1.2")),
        *({"aws:SourceArn": f"arn:aws:sqs:eu-west-1:{account}:q"} for account in ("111122223333", "444455556666")),
        *({"aws:TagKeys": keys} for keys in (["a"], ["a", "b"], ["c"])),
    ]

    assert differing([Request("s3:GetObject", "arn:aws:s3:::b/c", each) for each in contexts], [document]) == []
