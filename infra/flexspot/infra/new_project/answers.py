"""What a new project is to be, and what is wrong with a person's words for it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from flexspot.capacity.catalog.machines import is_zone_id, machines_of, zone_in_region, zone_names_differ
from flexspot.capacity.catalog.platform import VOCABULARIES, Platform
from flexspot.capacity.plan.checks.classes import is_taken_namespace
from flexspot.capacity.settings.network import EKS_ZONES
from flexspot.capacity.values.errors import ExitCode, ExplainedError, nearest
from flexspot.capacity.values.names import AWS_ACCOUNT, AWS_REGION, FORMS, GCP_PROJECT, GCP_REGION, NAME, ZONE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexspot.capacity.catalog.machines import Machine


CodeHost = Literal["github", "gitlab"]
"""Where the project's repository is."""

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
    `host` is where the repository is.
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
    host: CodeHost = "github"

    @property
    def described_machine(self) -> Machine:
        """The pools' machine, as the catalog has it."""
        return _machines(self.cloud)[self.machine]

    @property
    def gpus_per_node(self) -> int:
        """How many GPUs a node of that machine has."""
        gpu = self.described_machine.gpu
        return 0 if gpu is None else gpu.count


def _machines(cloud: Platform) -> dict[str, Machine]:
    return machines_of(VOCABULARIES[cloud].catalog)


def _with_gpus(cloud: Platform) -> dict[str, Machine]:
    """The machines that a pool can have without further words: those with GPUs in a fixed number."""
    return {name: each for name, each in _machines(cloud).items() if each.gpu is not None and len(each.gpu.counts) == 1}


OF_THE_CLOUDS = ("--account", "--prod-account", "--region", "--zone", "--machine", "--dev-gpus", "--prod-gpus")
"""The options of which the lab has nothing."""

OF_EKS = ("--cidr",)
"""Those of EKS alone."""


def refuse_options_of_others(cloud: Platform, given: Iterable[str]) -> None:
    """Raises ExplainedError that names those of the options `given` that are of no use on `cloud`."""
    unused = OF_EKS if cloud is Platform.GKE else (*OF_THE_CLOUDS, *OF_EKS) if cloud is Platform.LOCAL else ()
    if named := ", ".join(each for each in given if each in unused):
        problem = f"{named}: a project on {cloud} has no use for it."
        raise ExplainedError(problem, f"remove {named}, or give another --cloud.", exit_code=ExitCode.BAD_USAGE)


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
    """The teams, of words that may each hold several with commas between. Raises ExplainedError for no name, doubles and taken ones."""
    teams = [name.strip() for each in written for name in each.split(",")]
    for name in teams:
        of_form("--team", name, NAME)
        if teams.count(name) > 1:
            raise wrong("--team", name, "is named more than once", "each team once")
        if is_taken_namespace(name):
            raise wrong("--team", name, "is a namespace of the cluster itself", "another name")
    return tuple(teams)


def checked_region(cloud: Platform, region: str) -> str:
    """The region. Raises ExplainedError for what has not a region's form."""
    return of_form("--region", region, _REGION_FORMS[cloud])


def named_zones(cloud: Platform, region: str, written: list[str]) -> tuple[str, ...]:
    """The zones that are written, each once. Raises ExplainedError for what is none of the region, and on EKS for a single one."""
    for zone in written:
        if not zone_in_region(VOCABULARIES[cloud].catalog, region, of_form("--zone", zone, ZONE)):
            raise wrong("--zone", zone, f"is not in region {region}", "a zone of it")
    zones = tuple(dict.fromkeys(written))
    if cloud is Platform.EKS and len(zones) == 1:
        raise wrong("--zone", zones[0], "is alone", f"{EKS_ZONES[0]} zones or more, which an EKS cluster needs")
    return zones


def checked_machine(cloud: Platform, machine: str) -> str:
    """The machine of the pools. Raises ExplainedError for one that is not known, has no GPU, or may have several numbers of them."""
    fitting = _with_gpus(cloud)
    if machine not in fitting:
        problem = "has no GPUs, or none of a fixed number" if machine in _machines(cloud) else "is not in the catalog"
        raise wrong("--machine", machine, problem, nearest(machine, sorted(fitting)))
    return machine


def zones_with(cloud: Platform, region: str, machine: str, named: tuple[str, ...]) -> tuple[str, ...]:
    """The zones: those that are named, else up to three that offer the machine, filled up to as many as a cluster of EKS needs.

    Raises ExplainedError where the machine is not known to be offered.
    """
    found = _machines(cloud)[machine]
    if not found.zones:
        if not named:
            raise wrong(
                "--machine",
                machine,
                "is in the catalog, but where it is offered is not known",
                f"another machine, or with --zone the zones of {region}",
            )
        return named
    if region not in found.zones:
        there = sorted(name for name, each in _with_gpus(cloud).items() if region in each.zones)
        allowed = f"one that is ({nearest(machine, there)}), or with --region where it is: {nearest(region, sorted(found.zones))}"
        raise wrong("--machine", machine, f"is not known to be offered in {region}", allowed)
    if named:
        # A name may mean another zone in another account.
        sure = all(map(is_zone_id, named)) or not zone_names_differ(region)
        if sure and not set(named) & found.offered_in(region):
            allowed = f"another machine, or with --zone those that have it: {', '.join(found.zones[region])}"
            raise wrong("--machine", machine, f"is not offered in {', '.join(named)}", allowed)
        return named
    offered = found.zones[region][:_ZONES]
    others = [each for each in _usual_zones(cloud, region) if each not in offered]
    return (*offered, *others[: max(0, EKS_ZONES[0] - len(offered))]) if cloud is Platform.EKS else offered


def _usual_zones(cloud: Platform, region: str) -> list[str]:
    """The zones of a region, those first that offer most machines: old ones, where EKS may have no control plane, come last."""
    offering = Counter(zone for each in _machines(cloud).values() for zone in each.zones.get(region, ()))
    return sorted(offering, key=lambda zone: (-offering[zone], zone))


def checked_gpus(option: str, gpus: int, per_node: int) -> int:
    """The most GPUs of a pool. Raises ExplainedError for a number that whole nodes do not have."""
    if not 1 <= gpus <= GPUS_AT_MOST or gpus % per_node:
        raise wrong(option, gpus, "cannot be had", f"a multiple of {per_node} (GPUs of a node) from {per_node} to {GPUS_AT_MOST}")
    return gpus
