"""Judges of IAM documents that we did not write: parliament, which knows every action, and principalmapper, which decides as IAM does.

Neither is maintained at the pace of Python: parliament reads its data by pkg_resources, and principalmapper imports names that Python 3.10
moved. Both are judges in tests alone.
"""

from __future__ import annotations

import collections
import collections.abc
import json
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from iam_evaluator import Request, Verdict, listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from components.iam import Document

with warnings.catch_warnings():
    # pkg_resources says at each import that it is deprecated.
    warnings.simplefilter("ignore")
    import parliament

for _name in ("Mapping", "MutableMapping"):
    # Where principalmapper 1.1.5 looks for them.
    if not hasattr(collections, _name):
        setattr(collections, _name, getattr(collections.abc, _name))

from principalmapper.common import Node  # noqa: E402
from principalmapper.querying import local_policy_simulation  # noqa: E402
from principalmapper.util.case_insensitive_dict import CaseInsensitiveDict  # noqa: E402

_LINT = cast("Any", parliament)
_SIMULATION = cast("Any", local_policy_simulation)
_SOMEBODY = cast("Any", Node)(
    "arn:aws:iam::111122223333:role/somebody",
    "AROAEXAMPLE",
    attached_policies=[],
    group_memberships=[],
    trust_policy={},
    instance_profile=None,
    num_access_keys=0,
    active_password=False,
    is_admin=False,
    permissions_boundary=None,
    has_mfa=False,
    tags=None,
)
"""A role of the account that has nothing of its own."""
_KEYS = cast("Any", CaseInsensitiveDict)

GRAVE = {"MEDIUM", "HIGH", "CRITICAL"}

MISSPELT = "UNKNOWN_ACTION"
"""Of low severity to parliament; here it means a permission that is not given."""


@dataclass(frozen=True)
class Finding:
    """What parliament says against a document: its name of the issue, and the details."""

    issue: str
    details: str


def findings(document: str, *, resource_own: bool = False) -> list[Finding]:
    """The findings of medium severity and above, and unknown actions.

    With `resource_own` statements name no resource, as those of a role's trust and of a file system's policy: it is the one that has them.
    """
    if resource_own:
        written: dict[str, Any] = json.loads(document)
        document = json.dumps(written | {"Statement": [each | {"Resource": "*"} for each in written["Statement"]]})
    found = [_LINT.enhance_finding(each) for each in _LINT.analyze_policy_string(document).findings]
    return [Finding(each.issue, f"{each.detail or each.title}") for each in found if each.severity in GRAVE or each.issue == MISSPELT]


def foreign_decision(documents: Iterable[Document], request: Request) -> Verdict:
    """What principalmapper decides of a request of the identity that the documents are attached to."""
    context = _KEYS({key: value if isinstance(value, str) else listed(value) for key, value in request.context.items()})

    def some(effect: str) -> bool:
        return any(_SIMULATION.policy_has_matching_statement(each, effect, request.action, request.resource, context) for each in documents)

    documents = list(documents)
    if some("Deny"):
        return Verdict.DENIED
    return Verdict.ALLOWED if some("Allow") else Verdict.NOT_ALLOWED


def resource_decision(document: Document, request: Request) -> Verdict:
    """What principalmapper decides of a request of a role of the account, by the document of a resource such as a bucket."""
    context = _KEYS({key: value if isinstance(value, str) else listed(value) for key, value in request.context.items()})
    # It looks at a statement's own resources, which the document of a resource may leave out: they are the resource itself.
    whole = {**document, "Statement": [{"Resource": "*", **each} for each in document["Statement"]]}
    found = _SIMULATION.resource_policy_matching_statements(_SOMEBODY, whole, request.action, request.resource, context)
    effects = {each["Effect"] for each in found}
    return Verdict.DENIED if "Deny" in effects else Verdict.ALLOWED if "Allow" in effects else Verdict.NOT_ALLOWED


def service_decision(document: Document, request: Request) -> Verdict:
    """What principalmapper decides of a service's request, by the document of a resource such as a queue."""
    context = _KEYS(dict(request.context))
    arguments = (request.principal, document, request.action, request.resource, context)
    effects = {each["Effect"] for each in _SIMULATION.resource_policy_matching_statements(*arguments)}
    if "Deny" in effects:
        return Verdict.DENIED
    return Verdict.ALLOWED if "Allow" in effects else Verdict.NOT_ALLOWED
