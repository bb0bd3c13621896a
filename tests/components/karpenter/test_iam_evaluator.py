"""The evaluator of IAM documents decides as IAM's documentation says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from iam_evaluator import Request, Verdict, decide

if TYPE_CHECKING:
    from components.iam import Document, Statement

QUEUE = "arn:aws:sqs:eu-west-1:111122223333:training"


def document(**changes: Any) -> Document:
    statement: Statement = {"Effect": "Allow", "Action": "sqs:ReceiveMessage", "Resource": QUEUE}
    statement.update(changes)  # pyrefly: ignore[no-matching-overload] -- what is wrong on purpose, too
    return {"Version": "2012-10-17", "Statement": [statement]}


def under(condition: dict[str, Any], context: dict[str, Any]) -> bool:
    """Whether a request is allowed under a condition."""
    return decide([document(Condition=condition)], Request("sqs:ReceiveMessage", QUEUE, context)) is Verdict.ALLOWED


def test_what_no_statement_allows_is_not_allowed() -> None:
    assert decide([], Request("sqs:ReceiveMessage", QUEUE)) is Verdict.NOT_ALLOWED


def test_a_statement_that_denies_wins_wherever_it_stands() -> None:
    documents = [document(), document(Effect="Deny", Action="sqs:*", Resource="*")]

    assert {decide(documents, Request("sqs:ReceiveMessage", QUEUE)), decide(documents[::-1], Request("sqs:ReceiveMessage", QUEUE))} == {
        Verdict.DENIED
    }


@pytest.mark.parametrize(
    "action,wanted",
    [
        ("sqs:ReceiveMessage", True),
        ("SQS:receivemessage", True),
        ("sqs:*", True),
        ("*", True),
        ("sqs:Receive*", True),
        ("sqs:ReceiveMessag?", True),
        (["sqs:DeleteMessage", "sqs:ReceiveMessage"], True),
        ("sqs:Receive", False),
        ("sqs:Delete*", False),
        ("s3:*", False),
    ],
)
def test_actions_match_with_wildcards_and_in_any_case(action: Any, wanted: bool) -> None:  # noqa: FBT001 -- the expected outcome
    assert (decide([document(Action=action)], Request("sqs:ReceiveMessage", QUEUE)) is Verdict.ALLOWED) is wanted


@pytest.mark.parametrize(
    "resource,wanted",
    [
        (QUEUE, True),
        ("*", True),
        ("arn:aws:sqs:*:*:training", True),
        ("arn:aws:sqs:eu-west-1:111122223333:train*", True),
        (["arn:aws:sqs:eu-west-1:111122223333:other", QUEUE], True),
        ("arn:aws:sqs:eu-west-1:111122223333:Training", False),
        ("arn:aws:sqs:eu-west-2:*", False),
        ("arn:aws:sqs:eu-west-1:111122223333:train", False),
        ("arn.aws.sqs.eu-west-1.111122223333.training", False),
    ],
)
def test_resources_match_with_wildcards_and_in_their_case(resource: Any, wanted: bool) -> None:  # noqa: FBT001 -- the expected outcome
    assert (decide([document(Resource=resource)], Request("sqs:ReceiveMessage", QUEUE)) is Verdict.ALLOWED) is wanted


@pytest.mark.parametrize(
    "operator,wanted,found,holds",
    [
        ("StringEquals", "red", "red", True),
        ("StringEquals", "red", "Red", False),
        ("StringEquals", "r*", "red", False),
        ("StringEquals", ["blue", "red"], "red", True),
        ("StringNotEquals", "red", "blue", True),
        ("StringNotEquals", ["blue", "red"], "red", False),
        ("StringEqualsIgnoreCase", "red", "RED", True),
        ("StringLike", "r?d*", "red-1", True),
        ("StringLike", "*", "", True),
        ("StringLike", "r*", "blue", False),
        ("StringNotLike", "r*", "blue", True),
        ("StringEqualsIfExists", "red", "blue", False),
        ("StringEqualsIfExists", "red", "red", True),
        ("Bool", "false", "false", True),
        ("Bool", "false", "true", False),
        ("ArnEquals", "arn:aws:eks:*:111122223333:cluster/training", "arn:aws:eks:eu-west-1:111122223333:cluster/training", True),
        ("ArnLike", "arn:aws:eks:*:cluster/training", "arn:aws:eks:eu-west-1:111122223333:cluster/training", False),
        ("ArnLike", "arn:aws:eks:*:*:cluster/*", "arn:aws:eks:eu-west-1:111122223333:cluster/training", True),
        ("ArnNotLike", "arn:aws:eks:*:*:cluster/*", "arn:aws:eks:eu-west-1:111122223333:cluster/training", False),
        ("NumericLessThan", "1.2", "1.1", True),
        ("NumericLessThan", "1.2", "1.2", False),
        ("ForAllValues:StringEquals", ["a", "b"], ["b", "a"], True),
        ("ForAllValues:StringEquals", ["a", "b"], ["a", "c"], False),
        ("ForAllValues:StringEquals", ["a", "b"], [], True),
        ("ForAnyValue:StringEquals", ["a", "b"], ["a", "c"], True),
        ("ForAnyValue:StringEquals", ["a", "b"], ["c"], False),
        ("Null", "false", "red", True),
        ("Null", "true", "red", False),
    ],
)
def test_a_key_that_the_request_has_is_compared(operator: str, wanted: Any, found: Any, holds: bool) -> None:  # noqa: FBT001 -- likewise
    assert under({operator: {"aws:key": wanted}}, {"aws:key": found}) is holds


@pytest.mark.parametrize(
    "operator,holds",
    [
        ("StringEquals", False),
        ("StringLike", False),
        ("Bool", False),
        ("ArnLike", False),
        ("NumericLessThan", False),
        ("StringNotEquals", True),
        ("StringNotLike", True),
        ("ArnNotLike", True),
        ("StringEqualsIfExists", True),
        ("BoolIfExists", True),
        ("ForAllValues:StringEquals", True),
        ("ForAnyValue:StringEquals", False),
    ],
)
def test_a_key_that_the_request_lacks_counts_as_documented(operator: str, holds: bool) -> None:  # noqa: FBT001 -- the expected outcome
    assert under({operator: {"aws:key": "1"}}, {"aws:other": "1"}) is holds


def test_null_asks_whether_a_key_is_missing() -> None:
    assert under({"Null": {"aws:key": "true"}}, {})
    assert not under({"Null": {"aws:key": "false"}}, {})


def test_all_keys_of_all_operators_must_hold() -> None:
    condition = {"StringEquals": {"aws:a": "1", "aws:b": "2"}, "StringLike": {"aws:c": "3*"}}

    assert under(condition, {"aws:a": "1", "aws:b": "2", "aws:c": "33"})
    assert not under(condition, {"aws:a": "1", "aws:b": "2", "aws:c": "4"})
    assert not under(condition, {"aws:a": "1", "aws:c": "33"})


def test_the_name_of_a_key_is_written_in_any_case() -> None:
    assert under({"StringEquals": {"AWS:SecureTransport": "true"}}, {"aws:securetransport": "true"})


def test_a_resources_document_allows_the_services_that_it_names() -> None:
    documents = [document(Principal={"Service": ["events.amazonaws.com", "sqs.amazonaws.com"]})]

    def verdict(principal: str) -> Verdict:
        return decide(documents, Request("sqs:ReceiveMessage", QUEUE, principal=principal))

    assert verdict("sqs.amazonaws.com") is Verdict.ALLOWED
    assert verdict("sns.amazonaws.com") is Verdict.NOT_ALLOWED
    assert decide([document(Principal="*")], Request("sqs:ReceiveMessage", QUEUE, principal="anybody")) is Verdict.ALLOWED


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"NotAction": "sqs:*"}, "NotAction"),
        ({"Effect": "Maybe"}, "Maybe"),
        ({"Principal": {"AWS": "arn:aws:iam::111122223333:root"}}, "principal"),
        ({"Resource": "arn:aws:sqs:*:*:${aws:username}"}, "variable"),
        ({"Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}}, "IpAddress"),
        ({"Condition": {"ForSomeValues:StringEquals": {"aws:key": "1"}}}, "ForSomeValues"),
        ({"Condition": {"StringEquals": {"aws:key": "${aws:username}"}}}, "variable"),
    ],
)
def test_what_the_evaluator_does_not_know_is_not_passed_over(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        decide([document(**change)], Request("sqs:ReceiveMessage", QUEUE, {"aws:key": "1", "aws:SourceIp": "10.0.0.1"}))


def test_one_value_is_not_compared_with_several() -> None:
    with pytest.raises(ValueError, match="compares one value"):
        under({"StringEquals": {"aws:TagKeys": "a"}}, {"aws:TagKeys": ["a", "b"]})
