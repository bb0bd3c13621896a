"""What IAM would decide about one request, by the evaluator of these tests and by principalmapper, which must agree."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from foreign_iam import foreign_decision, resource_decision
from iam_evaluator import Request, Verdict, decide

if TYPE_CHECKING:
    from collections.abc import Mapping


def verdict(documents: list[str], action: str, resource: str, context: Mapping[str, str] | None = None) -> str:
    """`allowed`, `denied` by a statement, or allowed by `none`, for documents as they are registered: JSON."""
    given, request = [json.loads(document) for document in documents], Request(action, resource, context or {})
    found = decide(given, request)
    foreign = {
        foreign_decision([each], request) if "Principal" not in each["Statement"][0] else resource_decision(each, request) for each in given
    }
    strictest = next((each for each in (Verdict.DENIED, Verdict.ALLOWED) if each in foreign), Verdict.NOT_ALLOWED)
    assert strictest is found, f"principalmapper decides otherwise of {request}"
    return {Verdict.ALLOWED: "allowed", Verdict.DENIED: "denied"}.get(found, "none")
