"""What a Google Cloud project must have before anything is deployed to it, as data with a source: APIs and roles."""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from flexspot.capacity.catalog.data_files import Record, Source, read_records

_FILE = Path(__file__).parent / "gcp_project.yaml"


class When(StrEnum):
    """The part of a stack for which something is needed."""

    ALWAYS = "always"
    WORK_QUEUE = "work-queue"
    ENCRYPTION_KEY = "encryption-key"
    SECURITY_POSTURE = "security-posture"
    BINARY_AUTHORIZATION = "binary-authorization"
    OWN_NETWORK = "own-network"
    EXISTING_NETWORK = "existing-network"


class ProjectNeed(Record):
    """An API or a role, and what for."""

    name: Annotated[str, Field(pattern=r"^([a-z]+\.googleapis\.com|roles/[a-zA-Z]+\.[a-zA-Z]+)$")]
    purpose: Annotated[str, Field(alias="for")]
    when: When = When.ALWAYS


class Grantee(StrEnum):
    """To whom a role in a host project is given: whoever deploys, or an account of Google's in the stack's own project."""

    DEPLOYER = "deployer"
    CONTAINER = "container"
    CLOUDSERVICES = "cloudservices"


class HostGrant(Record):
    """A role in the host project of a Shared VPC, on the project as a whole or on the subnetwork of the nodes."""

    role: str
    to: Grantee
    scope: Literal["project", "subnetwork"]


class HostProject(Record):
    """What the host project of a Shared VPC must have."""

    apis: tuple[str, ...]
    grants: tuple[HostGrant, ...]


class ResourceNeed(Record):
    """By which API a type of resource is made, and by which role of whoever deploys."""

    api: str
    role: str


class _ProjectFile(Record):
    sources: dict[str, Source]
    apis: tuple[ProjectNeed, ...] = Field(min_length=1)
    roles: tuple[ProjectNeed, ...] = Field(min_length=1)
    host: HostProject
    resources: dict[str, ResourceNeed]


def apis_for(parts: set[When]) -> list[ProjectNeed]:
    """The APIs that must be enabled for these parts of a stack, by name."""
    return _of(_file().apis, parts)


def roles_for(parts: set[When]) -> list[ProjectNeed]:
    """The roles in the project of whoever deploys these parts of a stack, by name."""
    return _of(_file().roles, parts)


def host_project() -> HostProject:
    """What the host project of a Shared VPC must have."""
    return _file().host


def resource_needs() -> dict[str, ResourceNeed]:
    """What each type of resource is made by, by Pulumi's token."""
    return _file().resources


def _of(needs: tuple[ProjectNeed, ...], parts: set[When]) -> list[ProjectNeed]:
    return sorted((each for each in needs if each.when in {When.ALWAYS, *parts}), key=lambda each: each.name)


@cache
def _file() -> _ProjectFile:
    return read_records(_FILE, _ProjectFile)
