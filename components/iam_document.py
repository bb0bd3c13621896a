"""IAM policy documents: their shape, how they are written down, and how long they may be."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

MANAGED_POLICY_CHARACTERS = 6144
"""The most that a managed policy may have; white space does not count.

Source: IAM user guide, "IAM and AWS STS quotas"; the quota cannot be raised.
"""

VERSION = "2012-10-17"

Conditions = Mapping[str, Mapping[str, str | Sequence[str]]]
"""By operator, such as StringEquals, and by key; of several values of a key one must match."""


class Statement(TypedDict):
    """One permission, or with the effect Deny the opposite; keys and values are IAM's own."""

    Sid: NotRequired[str]
    Effect: str
    Principal: NotRequired[str | Mapping[str, str | Sequence[str]]]
    Action: str | Sequence[str]
    Resource: NotRequired[str | Sequence[str]]
    Condition: NotRequired[Conditions]


class Document(TypedDict):
    """A policy document: what an identity may do, what may be done with a resource, or who may take a role."""

    Version: str
    Id: NotRequired[str]
    Statement: list[Statement]


def as_json(document: Document) -> str:
    """The document without white space, its keys in the order in which they were written: the same text every time."""
    return json.dumps(document, separators=(",", ":"))


def counted_characters(document: Document) -> int:
    """How many characters IAM counts: all but white space."""
    return len(re.sub(r"\s", "", as_json(document)))
