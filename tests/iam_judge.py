"""Independent judges of IAM documents: parliament knows every action, and principalmapper decides requests as IAM does.

principalmapper has a separate environment, in which the nightly tests find it: `make .iam/.synced`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class _ResourceFiles(ModuleType):
    """A replacement for pkg_resources, which parliament uses and setuptools 81 removed."""

    @staticmethod
    def resource_filename(package: str, name: str) -> str:
        return str(resources.files(package) / name)


sys.modules.setdefault("pkg_resources", _ResourceFiles("pkg_resources"))
with warnings.catch_warnings():
    # parliament leaves its files open.
    warnings.simplefilter("ignore")
    import parliament

ENVIRONMENT = Path(__file__).resolve().parents[1] / ".iam"
DECIDE = Path(__file__).with_name("iam") / "decide.py"

_LINT: Any = parliament
_GRAVE = {"MEDIUM", "HIGH", "CRITICAL"}
_MISSPELT = "UNKNOWN_ACTION"
"""Issue of low severity in parliament. Here it means that a permission is not granted."""


@dataclass(frozen=True)
class Finding:
    """A finding of parliament about a document: the issue's name, and its details."""

    issue: str
    details: str


def findings(document: str, *, resource_own: bool = False) -> list[Finding]:
    """Return the findings of medium severity and above, and unknown actions.

    `resource_own`: statements name no resource, since they apply to their own, as in a role's trust policy or a file system's policy.
    """
    if resource_own:
        written: dict[str, Any] = json.loads(document)
        document = json.dumps(written | {"Statement": [each | {"Resource": "*"} for each in written["Statement"]]})
    found = [_LINT.enhance_finding(each) for each in _LINT.analyze_policy_string(document).findings]
    return [Finding(each.issue, f"{each.detail or each.title}") for each in found if each.severity in _GRAVE or each.issue == _MISSPELT]


@dataclass(frozen=True)
class Request:
    """One action on one resource. An action on several resources is one request for each, and all must be allowed."""

    action: str
    resource: str
    context: Mapping[str, str | Sequence[str]] = field(default_factory=dict[str, str])
    principal: str = ""
    """A service such as events.amazonaws.com; empty for a role of the account."""


def decided_otherwise(documents: Iterable[Any], wanted: str, requests: Sequence[Request]) -> list[Request]:
    """Return the requests that principalmapper does not decide as `wanted`.

    Decisions are `allowed`, `denied` by a statement, or `none` (no statement allows it). The documents are those of an identity, or of
    resources, which name principals.
    """
    python = ENVIRONMENT / "bin" / "python"
    assert python.exists(), "principalmapper is not installed: run `make .iam/.synced`"
    given = json.dumps({"documents": [*documents], "requests": [asdict(each) for each in requests]})
    done = subprocess.run([python, DECIDE], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    decisions: list[str] = json.loads(done.stdout)
    return [each for each, found in zip(requests, decisions, strict=True) if found != wanted]


def permissions(document: str) -> list[tuple[str, str, str, Any]]:
    """Return effect, action, resource and condition of each action on each resource that a document names, in its order."""
    return [
        (each["Effect"], action, resource, each.get("Condition", {}))
        for each in json.loads(document)["Statement"]
        for resource in listed(each.get("Resource", "*"))
        for action in listed(each["Action"])
    ]


def listed(values: str | Sequence[str]) -> list[str]:
    """Return one or several values as a list."""
    return [values] if isinstance(values, str) else [*values]
