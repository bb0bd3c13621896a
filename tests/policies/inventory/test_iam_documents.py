"""Statements of IAM documents, in JSON or as a mapping."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flexspot.policies.inventory.cloud_resources import allows_everything_of, characters_of, statements_of
from flexspot.policies.values.field import UNKNOWN, Field

STATEMENT = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}


def statement(**changes: Any) -> Field:
    return Field(STATEMENT | changes)


def test_white_space_does_not_count_however_the_document_is_written() -> None:
    document = {"Version": "2012-10-17", "Statement": [STATEMENT]}

    assert characters_of(Field(json.dumps(document, indent=4))) == characters_of(Field(document)) == 88
    assert characters_of(Field({"Statement": [UNKNOWN]})) is UNKNOWN


@pytest.mark.parametrize("document", [{"Statement": STATEMENT}, {"Statement": [STATEMENT]}, json.dumps({"Statement": STATEMENT})])
def test_one_statement_needs_no_list(document: Any) -> None:
    statements = statements_of(Field(document))

    assert isinstance(statements, tuple)
    assert [(place, each.value) for place, each in statements] == [("0", STATEMENT)]


@pytest.mark.parametrize("document", ["", "see the wiki", "[" * 100_000, "{}", 7])
def test_an_invalid_document_has_no_statements(document: Any) -> None:
    assert statements_of(Field(document)) == ()


@pytest.mark.parametrize(
    "changes,expected",
    [
        ({}, (True, "s3:*")),
        ({"Resource": ["arn:aws:s3:::models", "arn:aws:s3:::*"]}, (True, "s3:*")),
        ({"Action": "s3:Get*"}, (False, "s3:Get*")),
        ({"Resource": UNKNOWN}, (UNKNOWN, "s3:*")),
        ({"Action": [UNKNOWN]}, (UNKNOWN, "an action")),
        ({"Action": None}, (False, "")),
    ],
)
def test_a_statement_may_allow_all_actions_of_a_service_on_every_resource(changes: dict[str, Any], expected: tuple[Any, str]) -> None:
    assert allows_everything_of(statement(**changes)) == expected
