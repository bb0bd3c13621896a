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

# arn:aws:s3:::* and arn:aws:iam::123456789012:*: all of a service.
_EVERY_ARN = re.compile(r"\*|arn:[^:]*:[^:]*:[^:]*:[^:]*:\*")


def characters_of(document: Field) -> int | Unknown:
    """How many characters AWS counts: all but white space. Source: IAM user guide, "IAM and AWS STS quotas"."""
    if not _all_known(document):
        return UNKNOWN
    written = document.value if isinstance(document.value, str) else json.dumps(document.value, separators=(",", ":"))
    return len(_WHITE_SPACE.sub("", written))


def _all_known(field: Field) -> bool:
    return field.known and (not isinstance(field.value, (dict, list)) or all(_all_known(each) for each in field.parts().fields))


def statements_of(document: Field) -> tuple[tuple[str, Field], ...] | Unknown:
    """The statements with their places; UNKNOWN for a document that is not known yet, none for what is no document."""
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
    """One text, or a list of them."""
    return field.parts().fields if isinstance(field.value, list) else (() if field.absent else (field,))


def allows_everything_of(statement: Field) -> tuple[Tri, str]:
    """Whether a statement allows all actions, or all of one service, on everything there is, without a condition; and which."""
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
    """Whether a statement lets its holder pass any role to any service: with that goes whatever those roles may do."""
    found: list[tuple[Tri, str]] = []
    for action in _texts(statement.at("Action")):
        text = action.text()
        passing = UNKNOWN if text is UNKNOWN else fnmatchcase("iam:passrole", str(text).lower())
        found.append((all_of([passing, _on_everything(statement)]), str(text)))
    return _first(found)


def open_to_everybody(statement: Field) -> Tri:
    """Whether a statement allows something to anybody at all, without a condition."""
    principal = statement.at("Principal")
    anybody = [principal, *_texts(principal.at("AWS"))] if isinstance(principal.value, dict) else [principal]
    return all_of([_unconditional(statement), any_of(each.equals("*") for each in anybody)])


def faults_of(statement: Field, *, trust: bool) -> list[tuple[Tri, str, str]]:
    """What may be too broad in a statement, be it of a `trust` policy: whether it is, what it does, and what to write instead."""
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
    """`spenders` are the environment and the teams that have a budget, each with its path."""

    spenders: tuple[tuple[str, Field], ...]


@dataclass(frozen=True)
class CloudResource(View):
    """One resource. `fields` is where its settings are, `where` the path to them, empty or ending in a dot."""

    where: str
    fields: Field


class ClusterView(CloudResource):
    """A cluster as the cloud has it."""


class GkeClusterView(ClusterView):
    """A cluster of GKE."""


class EksClusterView(ClusterView):
    """A cluster of EKS."""


class Bucket(CloudResource):
    """A bucket, whatever it is for."""


class GcsBucketView(Bucket):
    """A bucket of Google Cloud Storage."""


class S3BucketView(Bucket):
    """A bucket of S3."""


class BucketAccess(CloudResource):
    """What else says who may do what with a bucket: access lists, grants, policies, blocks of public access."""


class AwsProvider(CloudResource):
    """A provider of AWS, whose region is that of the resources that name none."""


class Holder(StrEnum):
    """Of what a document of IAM is a part, by which AWS limits its length.

    MANAGED: a policy of its own. ROLE, USER, GROUP: written into one, where all such documents count together. TRUST: who may take a role.
    """

    MANAGED = "managed policy"
    ROLE = "role"
    USER = "user"
    GROUP = "group"
    TRUST = "trust policy"


@dataclass(frozen=True)
class IamDocument(View):
    """A document of AWS IAM, as JSON or as a mapping. `holder_name` names the role, user or group; absent where there is none."""

    where: str
    document: Field
    holder: Holder
    holder_name: Field


@dataclass(frozen=True)
class IamGrant(View):
    """A ready-made set of permissions that somebody is given: a role of Google Cloud, or the ARN of an AWS policy.

    `members` are who gets it; in AWS it is whatever the policy is attached to, and that is never a person here.
    """

    GCP: ClassVar[str] = "gcp"
    AWS: ClassVar[str] = "aws"

    cloud: str
    where: str
    granted: Field
    members: tuple[Field, ...]
    members_complete: bool


_SHORTEST_PREFIX = {4: 8, 6: 19}
"""By version, the largest range of one owner: a private network of IPv4 (stacks take no larger), the largest grant of IPv6."""


def lets_in_everybody(written: Field) -> Tri:
    """Whether a range in CIDR notation is so large that it keeps nobody out. What is no range is not."""
    text = written.text()
    if text is UNKNOWN:
        return UNKNOWN
    try:
        network = ip_network(str(text), strict=False)
    except ValueError:
        return False
    return network.prefixlen < _SHORTEST_PREFIX[4 if isinstance(network, IPv4Network) else 6]
