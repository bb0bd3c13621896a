"""Clusters, buckets, grants and address ranges as rules see them: resources of Pulumi's providers, or the clouds' own kinds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Network, ip_network
from typing import TYPE_CHECKING, ClassVar

from policies.inventory.views import View
from policies.values.unknown import UNKNOWN

if TYPE_CHECKING:
    from policies.values.field import Field
    from policies.values.unknown import Tri


@dataclass(frozen=True)
class CloudResource(View):
    """One resource. `fields` is where its settings are, `where` the path to them, empty or ending in a dot."""

    where: str
    fields: Field


class Cluster(CloudResource):
    """A cluster as the cloud has it."""


class GkeCluster(Cluster):
    """A cluster of GKE."""


class EksCluster(Cluster):
    """A cluster of EKS."""


class Bucket(CloudResource):
    """A bucket, whatever it is for."""


class GcsBucket(Bucket):
    """A bucket of Google Cloud Storage."""


class S3Bucket(Bucket):
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
