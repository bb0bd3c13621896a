"""Decides requests as IAM does, by principalmapper: JSON from standard input, `allowed`, `denied` or `none` for each to standard output.

Run by the interpreter of an environment that requirements.txt describes; tests/iam_judge.py asks it.
"""

from __future__ import annotations

import collections
import collections.abc
import importlib
import json
import sys
from typing import Any

for _name in ("Mapping", "MutableMapping"):
    # Where principalmapper 1.1.5 looks for them; Python 3.10 moved them.
    if not hasattr(collections, _name):
        setattr(collections, _name, getattr(collections.abc, _name))

SIMULATION: Any = importlib.import_module("principalmapper.querying.local_policy_simulation")
KEYS: Any = importlib.import_module("principalmapper.util.case_insensitive_dict").CaseInsensitiveDict
ANY_PRINCIPAL = importlib.import_module("principalmapper.common").Node(
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
"""A role of the account without permissions."""


def effects(document: dict[str, Any], request: dict[str, Any]) -> set[str]:
    """Return the effects of the statements that match a request, in the document of an identity, or of a resource with principals."""
    asked = (request["action"], request["resource"], KEYS(request["context"]))
    if not any("Principal" in each for each in document["Statement"]):
        return {each for each in ("Allow", "Deny") if SIMULATION.policy_has_matching_statement(document, each, *asked)}
    # A statement of a resource's own document may leave the resource out.
    whole = {**document, "Statement": [{"Resource": "*", **each} for each in document["Statement"]]}
    found = SIMULATION.resource_policy_matching_statements(request["principal"] or ANY_PRINCIPAL, whole, *asked)
    return {each["Effect"] for each in found}


def decided(documents: list[dict[str, Any]], request: dict[str, Any]) -> str:
    """Return the decision. A denying statement wins; otherwise an allowing one is needed."""
    found = {effect for document in documents for effect in effects(document, request)}
    return "denied" if "Deny" in found else "allowed" if "Allow" in found else "none"


if __name__ == "__main__":
    given = json.load(sys.stdin)
    json.dump([decided(given["documents"], each) for each in given["requests"]], sys.stdout)
