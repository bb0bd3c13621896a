"""Answers that describe a new project, and their checks."""

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
"""Host of the project's repository."""

MACHINES = {Platform.EKS: "g6.xlarge", Platform.GKE: "g2-standard-8", Platform.LOCAL: "g6.xlarge"}
"""Default machine of a new project's pools, with one L4."""

REGIONS = {Platform.EKS: "us-east-1", Platform.GKE: "us-central1", Platform.LOCAL: ""}

GPUS_AT_MOST = 512
"""Most GPUs of a new project's pool. The limit catches typing errors; larger pools need their own planning."""

_ACCOUNTS = {Platform.EKS: AWS_ACCOUNT, Platform.GKE: GCP_PROJECT}
_REGION_FORMS = {Platform.EKS: AWS_REGION, Platform.GKE: GCP_REGION}
_ZONES = 3

PROJECT_NAME = r"^[A-Za-z0-9_.-]{1,100}$"
"""Pattern of project names that Pulumi accepts (pulumi 3.259, sdk/go/common/tokens/project.go)."""


def wrong(option: str, value: object, problem: str, remedy: str) -> ExplainedError:
    """Return an error about one answer, which names its option."""
    return ExplainedError(f"{option}: {value!r} {problem}.", f"{remedy}.", exit_code=ExitCode.BAD_USAGE)


def of_form(option: str, value: str, pattern: str, words: str = "") -> str:
    """Return `value` if it matches `pattern`. Otherwise raise ExplainedError with the allowed form."""
    if re.fullmatch(pattern, value) is None:
        raise wrong(option, value, "is not valid", f"set {option} to {words or FORMS[pattern]}")
    return value


@dataclass(frozen=True)
class Answers:
    """The answers that describe a new project. Accounts and zones are empty for a project with only a lab."""

    cloud: Platform
    name: str
    owner: str
    teams: tuple[str, ...]
    account: str = ""
    """Google Cloud project or AWS account of development."""
    prod_account: str = ""
    """The same of production."""
    region: str = ""
    zones: tuple[str, ...] = ()
    machine: str = ""
    dev_gpus: int = 4
    """Most Spot GPUs of development."""
    prod_gpus: int = 16
    """Most Spot GPUs of production, which also has an on-demand machine for each team."""
    cidrs: tuple[str, ...] = ()
    """Networks that may reach the API server of an EKS development cluster. Empty: it is private."""
    host: CodeHost = "github"

    @property
    def described_machine(self) -> Machine:
        """The catalog's entry of the pools' machine."""
        return _machines(self.cloud)[self.machine]

    @property
    def gpus_per_node(self) -> int:
        """Number of GPUs of a node."""
        gpu = self.described_machine.gpu
        return 0 if gpu is None else gpu.count


def _machines(cloud: Platform) -> dict[str, Machine]:
    return machines_of(VOCABULARIES[cloud].catalog)


def _with_gpus(cloud: Platform) -> dict[str, Machine]:
    """Return the machines with a fixed number of GPUs, which a pool can use without further settings."""
    return {name: each for name, each in _machines(cloud).items() if each.gpu is not None and len(each.gpu.counts) == 1}


CLOUD_OPTIONS = ("--account", "--prod-account", "--region", "--zone", "--machine", "--dev-gpus", "--prod-gpus")
"""Options that do not apply to the lab."""

EKS_OPTIONS = ("--cidr",)
"""Options of EKS only."""


def refuse_inapplicable_options(cloud: Platform, given: Iterable[str]) -> None:
    """Raise ExplainedError if any of the options `given` does not apply to `cloud`."""
    unused = EKS_OPTIONS if cloud is Platform.GKE else (*CLOUD_OPTIONS, *EKS_OPTIONS) if cloud is Platform.LOCAL else ()
    if named := ", ".join(each for each in given if each in unused):
        problem = f"{named}: not used in a project on {cloud}."
        raise ExplainedError(problem, f"remove {named}, or give another --cloud.", exit_code=ExitCode.BAD_USAGE)


def checked_name(name: str) -> str:
    """Return the project's name. Raises ExplainedError for one that Pulumi does not accept."""
    return of_form("--name", name, PROJECT_NAME, "up to 100 letters, digits, dots, hyphens and underscores, such as acme-ai")


def checked_account(cloud: Platform, account: str) -> str:
    """Return the Google Cloud project or the AWS account. Raises ExplainedError for a malformed one."""
    return of_form("--account", account, _ACCOUNTS[cloud])


def checked_prod_account(cloud: Platform, account: str, of_development: str) -> str:
    """Return the account of production. Raises ExplainedError for a malformed one, and on GKE for the project of development.

    Google Cloud does not distinguish pods of the same namespace and service account in different clusters of a project: they would reach
    each other's buckets.
    """
    of_form("--prod-account", account, _ACCOUNTS[cloud])
    if cloud is Platform.GKE and account == of_development:
        remedy = "set --prod-account to a separate project: teams of the same name in one project can reach each other's storage"
        raise wrong("--prod-account", account, "is also the project of development", remedy)
    return account


def checked_owner(owner: str) -> str:
    """Return the owner of the project. Raises ExplainedError for a malformed name."""
    return of_form("--owner", owner, NAME)


def checked_teams(written: list[str]) -> tuple[str, ...]:
    """Return the teams from comma-separated values. Raises ExplainedError for malformed, duplicate and reserved names."""
    teams = [name.strip() for each in written for name in each.split(",")]
    for name in teams:
        of_form("--team", name, NAME)
        if teams.count(name) > 1:
            raise wrong("--team", name, "is listed more than once", "list each --team once")
        if is_taken_namespace(name):
            raise wrong("--team", name, "is reserved for a namespace of the cluster", "choose another name for --team")
    return tuple(teams)


def checked_region(cloud: Platform, region: str) -> str:
    """Return the region. Raises ExplainedError for a malformed one."""
    return of_form("--region", region, _REGION_FORMS[cloud])


def named_zones(cloud: Platform, region: str, written: list[str]) -> tuple[str, ...]:
    """Return the given zones without duplicates. Raises ExplainedError for zones outside the region, and on EKS for a single one."""
    for zone in written:
        if not zone_in_region(VOCABULARIES[cloud].catalog, region, of_form("--zone", zone, ZONE)):
            raise wrong("--zone", zone, f"is not in region {region}", f"set --zone to a zone of {region}")
    zones = tuple(dict.fromkeys(written))
    if cloud is Platform.EKS and len(zones) == 1:
        raise wrong("--zone", zones[0], "is the only zone", f"add another --zone: an EKS cluster needs {EKS_ZONES[0]} or more")
    return zones


def checked_machine(cloud: Platform, machine: str) -> str:
    """Return the machine of the pools. Raises ExplainedError for an unknown one and for one without a fixed number of GPUs."""
    fitting = _with_gpus(cloud)
    if machine not in fitting:
        problem = "has no GPUs, or no fixed number of them" if machine in _machines(cloud) else "is not in the catalog"
        raise wrong("--machine", machine, problem, f"choose another --machine; {nearest(machine, sorted(fitting))}")
    return machine


def zones_with(cloud: Platform, region: str, machine: str, named: tuple[str, ...]) -> tuple[str, ...]:
    """Return the named zones, by default up to three that offer the machine, plus others if EKS requires more.

    Raises ExplainedError if the machine is not known to be offered there.
    """
    found = _machines(cloud)[machine]
    if not found.zones:
        if not named:
            raise wrong(
                "--machine",
                machine,
                "is in the catalog, but its zones are not known",
                f"choose another --machine, or name zones of {region} with --zone",
            )
        return named
    if region not in found.zones:
        there = sorted(name for name, each in _with_gpus(cloud).items() if region in each.zones)
        remedy = f"choose another --machine ({nearest(machine, there)}), or a --region with it: {nearest(region, sorted(found.zones))}"
        raise wrong("--machine", machine, f"is not known to be offered in {region}", remedy)
    if named:
        # The same zone name may refer to different zones in different accounts.
        sure = all(map(is_zone_id, named)) or not zone_names_differ(region)
        if sure and not set(named) & found.offered_in(region):
            remedy = f"choose another --machine, or a --zone with it: {', '.join(found.zones[region])}"
            raise wrong("--machine", machine, f"is not offered in {', '.join(named)}", remedy)
        return named
    offered = found.zones[region][:_ZONES]
    others = [each for each in _usual_zones(cloud, region) if each not in offered]
    return (*offered, *others[: max(0, EKS_ZONES[0] - len(offered))]) if cloud is Platform.EKS else offered


def _usual_zones(cloud: Platform, region: str) -> list[str]:
    """Return the zones of a region, those with most machines first. Old zones, where EKS may lack control planes, come last."""
    offering = Counter(zone for each in _machines(cloud).values() for zone in each.zones.get(region, ()))
    return sorted(offering, key=lambda zone: (-offering[zone], zone))


def checked_gpus(option: str, gpus: int, per_node: int) -> int:
    """Return the most GPUs of a pool. Raises ExplainedError for a number that is out of range or not one of whole nodes."""
    if not 1 <= gpus <= GPUS_AT_MOST or gpus % per_node:
        remedy = f"set {option} to a multiple of {per_node} (GPUs of a node) from {per_node} to {GPUS_AT_MOST}"
        raise wrong(option, gpus, "is not possible", remedy)
    return gpus
