"""A network that is there already: its two names agree with each other and with the stack, in a Shared VPC too.

GKE makes a cluster in a subnetwork of its own region, and of the network that is named beside it; with a Shared VPC both are the host
project's (docs.cloud.google.com/kubernetes-engine/docs/how-to/cluster-shared-vpc, read 2026-11-26). Offline nobody else could say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.settings.network import full_name
from capacity.settings.platform import GkeSettings
from capacity.values.errors import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.plan.resolve import ResolvedSettings
    from capacity.settings.network import NetworkName


def the_network_and_its_subnetwork_belong_together(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """What one name says of project and region, the other and the stack say too."""
    settings = resolved.settings
    if not isinstance(settings, GkeSettings):
        return
    network, subnetwork = settings.network.existing_network, settings.network.existing_subnetwork
    if network is None or subnetwork is None:
        return
    yield from _form("network.existing_network", network, "projects/PROJECT/global/networks/NAME", of_region=False)
    yield from _form(
        "network.existing_subnetwork", subnetwork, f"projects/PROJECT/regions/{settings.region}/subnetworks/NAME", of_region=True
    )
    of_network, of_subnetwork = full_name(network), full_name(subnetwork)
    if of_subnetwork is not None and of_subnetwork.region not in {None, settings.region}:
        problem = f"is in region {of_subnetwork.region}, but GKE accepts only a subnetwork in the cluster's region, {settings.region}"
        remedy = f"name a subnetwork in {settings.region}, or set region to {of_subnetwork.region}"
        yield SettingsProblem("network.existing_subnetwork", repr(subnetwork), problem, remedy, "subnetwork-of-another-region")
    yield from _projects(settings.project, of_network, of_subnetwork)


def _form(path: str, written: str, form: str, *, of_region: bool) -> Iterator[SettingsProblem]:
    found = full_name(written)
    if "/" in written and (found is None or (found.region is None) is of_region):
        what = "subnetwork" if of_region else "network"
        yield SettingsProblem(
            path, repr(written), f"is not the full name of a {what}", f"allowed: a short name, or {form}", "not-a-network-name"
        )


def _projects(own: str, network: NetworkName | None, subnetwork: NetworkName | None) -> Iterator[SettingsProblem]:
    """A name alone is of the stack's own project."""
    of_network, of_subnetwork = (each.project if each else own for each in (network, subnetwork))
    if of_network == of_subnetwork:
        return
    if network is None:
        path, problem = "network.existing_network", f"is a short name, so in project {own}, but the subnetwork is in {of_subnetwork}"
        remedy = f"write projects/{of_subnetwork}/global/networks/NAME, the network of the host project that the subnetwork is in"
    elif subnetwork is None:
        path, problem = "network.existing_subnetwork", f"is a short name, so in project {own}, but the network is in {of_network}"
        remedy = f"write projects/{of_network}/regions/REGION/subnetworks/NAME, a subnetwork of that network"
    else:
        path, problem = "network.existing_subnetwork", f"is in project {of_subnetwork}, but its network is in {of_network}"
        remedy = "name both from one project, the host project of the Shared VPC"
    yield SettingsProblem(path, "", problem, remedy, "subnetwork-of-another-project")


CHECKS = (the_network_and_its_subnetwork_belong_together,)
