"""What a new project is to be, and what is wrong with a person's words for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.catalog.machines import Cloud, machines_of
from capacity.catalog.platform import Platform
from capacity.values.errors import ExitCode, ExplainedError, nearest
from capacity.values.names import AWS_ACCOUNT, AWS_REGION, FORMS, GCP_PROJECT, GCP_REGION, NAME, ZONE

if TYPE_CHECKING:
    from capacity.catalog.machines import Machine

MACHINES = {Platform.EKS: "g6.xlarge", Platform.GKE: "g2-standard-8", Platform.LOCAL: "g6.xlarge"}
"""The machine of a new project's pools where nobody names one: one L4."""

REGIONS = {Platform.EKS: "us-east-1", Platform.GKE: "us-central1", Platform.LOCAL: ""}

GPUS_AT_MOST = 512
"""The most GPUs of a new project's pool. More are a plan of their own, and typing errors are caught."""

_ACCOUNTS = {Platform.EKS: AWS_ACCOUNT, Platform.GKE: GCP_PROJECT}
_REGION_FORMS = {Platform.EKS: AWS_REGION, Platform.GKE: GCP_REGION}
_ZONES = 3

PROJECT_NAME = r"^[A-Za-z0-9_.-]{1,100}$"
"""What Pulumi takes as a project's name (pulumi 3.259, sdk/go/common/tokens/project.go)."""


def wrong(option: str, value: object, problem: str, allowed: str) -> ExplainedError:
    """What is wrong with one answer, by the option that gives it."""
    return ExplainedError(f"{option} {value!r} {problem}.", f"give {option}: {allowed}.", exit_code=ExitCode.BAD_USAGE)


def of_form(option: str, value: str, pattern: str, words: str = "") -> str:
    """`value`, which fits `pattern`. Raises ExplainedError that says what is allowed."""
    if re.fullmatch(pattern, value) is None:
        raise wrong(option, value, "cannot be used", words or FORMS[pattern])
    return value


@dataclass(frozen=True)
class Answers:
    """A new project: where it runs, whose it is, who shares it, and the most GPUs that it has at once.

    `account` and `prod_account` are the Google Cloud projects or the AWS accounts, empty for a project of the lab alone; `zones` are those
    that the stacks use, none for the lab. `dev_gpus` and `prod_gpus` are on Spot; production has a machine on demand for each team besides.
    `cidrs` are from where the API server of an EKS development cluster is reached; none keeps it private.
    """

    cloud: Platform
    name: str
    owner: str
    teams: tuple[str, ...]
    account: str = ""
    prod_account: str = ""
    region: str = ""
    zones: tuple[str, ...] = ()
    machine: str = ""
    dev_gpus: int = 4
    prod_gpus: int = 16
    cidrs: tuple[str, ...] = ()

    @property
    def described_machine(self) -> Machine:
        """The pools' machine, as the catalog has it."""
        return machines_of(Cloud.GCP if self.cloud is Platform.GKE else Cloud.AWS)[self.machine]

    @property
    def gpus_per_node(self) -> int:
        """How many GPUs a node of that machine has."""
        gpu = self.described_machine.gpu
        return 0 if gpu is None else gpu.count


def checked_name(name: str) -> str:
    """The project's name. Raises ExplainedError for one that Pulumi does not take."""
    return of_form("--name", name, PROJECT_NAME, "up to 100 letters, digits, dots, hyphens and underscores, such as acme-ai")


def checked_account(cloud: Platform, account: str) -> str:
    """The Google Cloud project or the AWS account. Raises ExplainedError for what is none."""
    return of_form("--account", account, _ACCOUNTS[cloud])


def checked_prod_account(cloud: Platform, account: str, of_development: str) -> str:
    """That of production. Raises ExplainedError for what is none, and on GKE for the project of development.

    To Google Cloud pods of one namespace and account are the same in all clusters of a project, and would reach each other's buckets.
    """
    of_form("--prod-account", account, _ACCOUNTS[cloud])
    if cloud is Platform.GKE and account == of_development:
        allowed = "a project of its own, since teams of one name in one project reach each other's storage"
        raise wrong("--prod-account", account, "is the project of development", allowed)
    return account


def checked_owner(owner: str) -> str:
    """Who answers for everything. Raises ExplainedError for what is no name."""
    return of_form("--owner", owner, NAME)


def checked_teams(written: list[str]) -> tuple[str, ...]:
    """The teams, of words that may each hold several with commas between. Raises ExplainedError for what is no name, and for doubles."""
    teams = [name.strip() for each in written for name in each.split(",")]
    for name in teams:
        of_form("--team", name, NAME)
        if teams.count(name) > 1:
            raise wrong("--team", name, "is named more than once", "each team once")
    return tuple(teams)


def checked_region(cloud: Platform, region: str) -> str:
    """The region. Raises ExplainedError for what has not a region's form."""
    return of_form("--region", region, _REGION_FORMS[cloud])


def checked_machine(cloud: Platform, machine: str) -> str:
    """The machine of the pools. Raises ExplainedError for one that is not known, has no GPU, or may have several numbers of them."""
    known = machines_of(Cloud.GCP if cloud is Platform.GKE else Cloud.AWS)
    fitting = sorted(name for name, each in known.items() if each.gpu is not None and len(each.gpu.counts) == 1)
    if machine not in fitting:
        problem = "has no GPUs, or none of a fixed number" if machine in known else "is not in the catalog"
        raise wrong("--machine", machine, problem, nearest(machine, fitting))
    return machine


def checked_zones(cloud: Platform, region: str, machine: str, written: list[str]) -> tuple[str, ...]:
    """The zones: those that are written, else up to three that offer the machine. Raises ExplainedError where none is known."""
    for zone in written:
        of_form("--zone", zone, ZONE)
    if written:
        return tuple(dict.fromkeys(written))
    zones = machines_of(Cloud.GCP if cloud is Platform.GKE else Cloud.AWS)[machine].zones
    if region not in zones:
        known = f"a region that is known to have it ({nearest(region, sorted(zones))}), or its zones with --zone"
        raise wrong("--region", region, f"is not known to offer {machine}", known)
    return zones[region][:_ZONES]


def checked_gpus(option: str, gpus: int, per_node: int) -> int:
    """The most GPUs of a pool. Raises ExplainedError for a number that whole nodes do not have."""
    if not 1 <= gpus <= GPUS_AT_MOST or gpus % per_node:
        raise wrong(option, gpus, "cannot be had", f"a multiple of {per_node} (GPUs of a node) from {per_node} to {GPUS_AT_MOST}")
    return gpus
