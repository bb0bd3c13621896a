"""What IAM would decide about one request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from iam_evaluator import Request, Verdict, decide

if TYPE_CHECKING:
    from collections.abc import Mapping


def verdict(documents: list[str], action: str, resource: str, context: Mapping[str, str] | None = None) -> str:
    """`allowed`, `denied` by a statement, or allowed by `none`, for documents as they are registered: JSON."""
    found = decide([json.loads(document) for document in documents], Request(action, resource, context or {}))
    return {Verdict.ALLOWED: "allowed", Verdict.DENIED: "denied"}.get(found, "none")
