"""Clusters, buckets, grants, documents of IAM, address ranges and the cost of a month, as rules see them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from ipaddress import IPv4Network, ip_network
from typing import ClassVar

from flexspot.policies.inventory.views import View
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, all_of, any_of, plain

_WHITE_SPACE = re.compile(r"\s")

# arn:aws:s3:::* and arn:aws:iam::123456789012:*: all resources of a service.
_EVERY_ARN = re.compile(r"\*|arn:[^:]*:[^:]*:[^:]*:[^:]*:\*")


def characters_of(document: Field) -> int | Unknown:
    """Return the number of characters that AWS counts: all but white space. Source: IAM user guide, "IAM and AWS STS quotas"."""
    if not _all_known(document):
        return UNKNOWN
    written = document.value if isinstance(document.value, str) else json.dumps(document.value, separators=(",", ":"))
    return len(_WHITE_SPACE.sub("", written))


def _all_known(field: Field) -> bool:
    return field.known and (not isinstance(field.value, (dict, list)) or all(_all_known(each) for each in field.parts().fields))


def statements_of(document: Field) -> tuple[tuple[str, Field], ...] | Unknown:
    """Return the statements with their places. UNKNOWN if the document is not known yet, empty if it is invalid."""
    if not document.known:
        return UNKNOWN
    if isinstance(document.value, str):
        try:
            document = Field(plain(json.loads(document.value)))
        except (ValueError, RecursionError):
            return ()
    listed = document.at("Statement")
    if not listed.known:
        return UNKNOWN
    return (("0", listed),) if isinstance(listed.value, dict) else listed.parts().named


def _texts(field: Field) -> tuple[Field, ...]:
    """Return one text, or the elements of a list, as a tuple."""
    return field.parts().fields if isinstance(field.value, list) else (() if field.absent else (field,))


def allows_everything_of(statement: Field) -> tuple[Tri, str]:
    """Return whether a statement allows all actions, or all of one service, on every resource without a condition; and which."""
    open_to_all = _on_everything(statement)
    found: list[tuple[Tri, str]] = []
    for action in _texts(statement.at("Action")):
        text = action.text()
        wide = UNKNOWN if text is UNKNOWN else bool(text) and text.rpartition(":")[2] == "*"
        found.append((all_of([wide, open_to_all]), text if isinstance(text, str) else "an action"))
    if not statement.at("NotAction").absent:
        found.append((open_to_all, "everything outside its NotAction"))
    return _first(found)


def passes_any_role(statement: Field) -> tuple[Tri, str]:
    """Return whether a statement allows passing any role to any service, and by which action: that grants those roles' permissions."""
    found: list[tuple[Tri, str]] = []
    for action in _texts(statement.at("Action")):
        text = action.text()
        passing = UNKNOWN if text is UNKNOWN else fnmatchcase("iam:passrole", str(text).lower())
        found.append((all_of([passing, _on_everything(statement)]), str(text)))
    return _first(found)


def open_to_everybody(statement: Field) -> Tri:
    """Return whether a statement allows an action to everyone, without a condition."""
    principal = statement.at("Principal")
    anybody = [principal, *_texts(principal.at("AWS"))] if isinstance(principal.value, dict) else [principal]
    return all_of([_unconditional(statement), any_of(each.equals("*") for each in anybody)])


def faults_of(statement: Field, *, trust: bool) -> list[tuple[Tri, str, str]]:
    """Return possible faults of a statement, as (verdict, effect, remedy). `trust`: it is part of a trust policy."""
    if trust:
        return [(open_to_everybody(statement), "lets anybody assume the role", "name who may assume it in Principal")]
    wide, action = allows_everything_of(statement)
    passing, by = passes_any_role(statement)
    return [
        (wide, f"allows {action} on every resource", "list the actions and the resources"),
        (passing, f"allows {by} on every role", "name the role in Resource"),
    ]


def _on_everything(statement: Field) -> Tri:
    def everything(resource: Field) -> Tri:
        text = resource.text()
        return UNKNOWN if text is UNKNOWN else _EVERY_ARN.fullmatch(str(text)) is not None

    return all_of([_unconditional(statement), any_of(everything(each) for each in _texts(statement.at("Resource")))])


def _unconditional(statement: Field) -> Tri:
    condition = statement.at("Condition")
    return all_of([statement.at("Effect").equals("Allow"), condition.absent or condition.value == {} if condition.known else UNKNOWN])


def _first(found: list[tuple[Tri, str]]) -> tuple[Tri, str]:
    answer = any_of(each for each, _ in found)
    return answer, next((name for each, name in found if each is answer), "")


@dataclass(frozen=True)
class MonthlyCostView(View):
    """The expected cost of a month."""

    spenders: tuple[tuple[str, Field], ...]
    """The environment and the teams that have a budget, each with its path."""


@dataclass(frozen=True)
class CloudResource(View):
    """One resource of a cloud."""

    where: str
    """Path to the settings, empty or ending in a dot."""
    fields: Field
    """The settings."""


class ClusterView(CloudResource):
    """A cluster of a cloud."""


class GkeClusterView(ClusterView):
    """A GKE cluster."""


class EksClusterView(ClusterView):
    """An EKS cluster."""


class Bucket(CloudResource):
    """A bucket for any purpose."""


class GcsBucketView(Bucket):
    """A bucket of Google Cloud Storage."""


class S3BucketView(Bucket):
    """A bucket of S3."""


class BucketAccess(CloudResource):
    """A resource that controls access to a bucket: access lists, grants, policies, blocks of public access."""


class AwsProvider(CloudResource):
    """A provider of AWS. Its region applies to resources that name none."""


class Holder(StrEnum):
    """The kind of holder of an IAM document, which decides AWS's limit on its length.

    MANAGED: a separate policy. ROLE, USER, GROUP: inline in one, where all such documents count together. TRUST: a role's trust policy.
    """

    MANAGED = "managed policy"
    ROLE = "role"
    USER = "user"
    GROUP = "group"
    TRUST = "trust policy"


@dataclass(frozen=True)
class IamDocument(View):
    """A document of AWS IAM, as JSON or as a mapping."""

    where: str
    document: Field
    holder: Holder
    holder_name: Field
    """Name of the role, user or group; absent if there is none."""


@dataclass(frozen=True)
class IamGrant(View):
    """A predefined set of permissions that is granted: a role of Google Cloud, or the ARN of an AWS policy."""

    GCP: ClassVar[str] = "gcp"
    AWS: ClassVar[str] = "aws"

    cloud: str
    where: str
    granted: Field
    members: tuple[Field, ...]
    """Members that receive it. Empty for AWS, where the policy's target is never a person here."""
    members_complete: bool


_SHORTEST_PREFIX = {4: 8, 6: 19}
"""Largest range of one owner, by IP version: a private network of IPv4 (stacks allow no larger), the largest grant of IPv6."""


def lets_in_everybody(written: Field) -> Tri:
    """Return whether a CIDR range is so large that it excludes no one. False for an invalid range."""
    text = written.text()
    if text is UNKNOWN:
        return UNKNOWN
    try:
        network = ip_network(str(text), strict=False)
    except ValueError:
        return False
    return network.prefixlen < _SHORTEST_PREFIX[4 if isinstance(network, IPv4Network) else 6]
