"""Quotas of an AWS account, and APIs and roles of a Google Cloud project, that a platform needs: data with sources."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from flexspot.capacity.catalog.data_files import Record, Source, SourcedFile, read_records

_FILE = Path(__file__).parent / "gcp_project.yaml"


class When(StrEnum):
    """The part of a stack that needs something."""

    ALWAYS = "always"
    WORK_QUEUE = "work-queue"
    ENCRYPTION_KEY = "encryption-key"
    SECURITY_POSTURE = "security-posture"
    BINARY_AUTHORIZATION = "binary-authorization"
    OWN_NETWORK = "own-network"
    EXISTING_NETWORK = "existing-network"


class ProjectNeed(Record):
    """An API or a role, with its purpose."""

    name: Annotated[str, Field(pattern=r"^([a-z]+\.googleapis\.com|roles/[a-zA-Z]+\.[a-zA-Z]+)$")]
    purpose: Annotated[str, Field(alias="for")]
    when: When = When.ALWAYS


class Grantee(StrEnum):
    """Recipient of a role in a host project: the deployer, or an account of Google's in the stack's own project."""

    DEPLOYER = "deployer"
    CONTAINER = "container"
    CLOUDSERVICES = "cloudservices"


class HostGrant(Record):
    """A role in the host project of a Shared VPC, on the whole project or on the nodes' subnetwork."""

    role: str
    to: Grantee
    scope: Literal["project", "subnetwork"]


class HostProject(Record):
    """APIs and roles that the host project of a Shared VPC must have."""

    apis: tuple[str, ...]
    grants: tuple[HostGrant, ...]


class ResourceNeed(Record):
    """The API that creates a type of resource, and the role that the deployer needs for it."""

    api: str
    role: str


class _ProjectFile(Record):
    sources: dict[str, Source]
    apis: tuple[ProjectNeed, ...] = Field(min_length=1)
    roles: tuple[ProjectNeed, ...] = Field(min_length=1)
    host: HostProject
    resources: dict[str, ResourceNeed]


def apis_for(parts: set[When]) -> list[ProjectNeed]:
    """Return the APIs that must be enabled for these parts of a stack, sorted by name."""
    return _of(_file().apis, parts)


def roles_for(parts: set[When]) -> list[ProjectNeed]:
    """Return the project roles that deploying these parts of a stack needs, sorted by name."""
    return _of(_file().roles, parts)


def host_project() -> HostProject:
    """Return the APIs and roles that the host project of a Shared VPC must have."""
    return _file().host


def resource_needs() -> dict[str, ResourceNeed]:
    """Return the API and role behind each type of resource, by Pulumi's type token."""
    return _file().resources


def _of(needs: tuple[ProjectNeed, ...], parts: set[When]) -> list[ProjectNeed]:
    return sorted((each for each in needs if each.when in {When.ALWAYS, *parts}), key=lambda each: each.name)


@cache
def _file() -> _ProjectFile:
    return read_records(_FILE, _ProjectFile)


_AWS_QUOTAS = Path(__file__).parent / "aws_quotas.yaml"

_FAMILY = re.compile(r"([a-z]+)\d*")


class Counts(StrEnum):
    """The unit of a quota. VCPU: vCPU of running machines. ADDRESSES: Elastic IP addresses."""

    VCPU = "vcpu"
    ADDRESSES = "addresses"


class Market(StrEnum):
    """Purchase options that quotas distinguish. A machine on an on-demand capacity reservation counts as ON_DEMAND."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"


class AwsQuota(Record):
    """One quota of EC2 in a region, by its code in Service Quotas."""

    code: Annotated[str, Field(pattern=r"^L-[0-9A-F]{8}$")]
    name: str
    counts: Counts
    market: Market | None = None
    families: tuple[str, ...] = ()
    default: Annotated[int, Field(ge=0)]
    """Value for an account that never requested an increase."""
    source: str

    @model_validator(mode="after")
    def _machines_have_a_market(self) -> Self:
        if (self.counts is Counts.VCPU) != bool(self.market and self.families):
            raise ValueError(f"{self.code} counts {self.counts}: a quota of vCPU has market and families, another has neither")
        return self


class AwsQuotaFile(SourcedFile):
    """The quotas, each with a source."""

    quotas: tuple[AwsQuota, ...]

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if len({each.code for each in self.quotas}) < len(self.quotas):
            raise ValueError("a code stands twice")
        return self


@cache
def aws_quotas() -> tuple[AwsQuota, ...]:
    """Return all known quotas."""
    return read_records(_AWS_QUOTAS, AwsQuotaFile).quotas


def quota_of_machine(machine: str, market: Market) -> AwsQuota | None:
    """Return the quota that a machine such as g6.xlarge counts against. None if no source names one."""
    found = _FAMILY.match(machine)
    names = {found.group(0), found.group(1)} if found else set[str]()
    return next((each for each in aws_quotas() if each.market is market and names & {*each.families}), None)


def address_quota() -> AwsQuota:
    """Return the quota of Elastic IP addresses."""
    return next(each for each in aws_quotas() if each.counts is Counts.ADDRESSES)
