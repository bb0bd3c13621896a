"""Checks of an existing network in the stack's project or a Shared VPC's host. Mismatches are refused without asking the cloud."""

from __future__ import annotations

from typing import Any

import pytest
from plan_settings import gke, plan_of, pool, refusals, team

HOST = "projects/acme-net"
NETWORK, SUBNETWORK = f"{HOST}/global/networks/shared", f"{HOST}/regions/us-central1/subnetworks/gpu-nodes"


def settings(network: str, subnetwork: str) -> dict[str, Any]:
    names = {"existing_network": network, "existing_subnetwork": subnetwork}
    return gke(pool("l4", "g2-standard-4", "spot", 4, "training"), teams=[team("red", shares={"l4": 1})], network=names)


@pytest.mark.parametrize(
    "network,subnetwork",
    [
        ("shared", "gpu-nodes"),
        (NETWORK, SUBNETWORK),
        (f"https://www.googleapis.com/compute/v1/{NETWORK}", f"https://www.googleapis.com/compute/v1/{SUBNETWORK}"),
        ("shared", "projects/acme-ai/regions/us-central1/subnetworks/gpu-nodes"),
    ],
)
def test_names_of_one_project_and_the_clusters_region_are_accepted(network: str, subnetwork: str) -> None:
    assert plan_of(settings(network, subnetwork)).pools


@pytest.mark.parametrize(
    "network,subnetwork,rule,path,remedy",
    [
        (NETWORK, SUBNETWORK.replace("central1", "east4"), "subnetwork-of-another-region", "existing_subnetwork", "set region to us-east4"),
        ("shared", SUBNETWORK, "subnetwork-of-another-project", "existing_network", "write projects/acme-net/global/networks/NAME"),
        (NETWORK, "gpu-nodes", "subnetwork-of-another-project", "existing_subnetwork", "write projects/acme-net/regions/"),
        (
            NETWORK,
            SUBNETWORK.replace("acme-net", "other"),
            "subnetwork-of-another-project",
            "existing_subnetwork",
            "name both in one project",
        ),
        (
            NETWORK,
            "regions/us-central1/subnetworks/gpu-nodes",
            "not-a-network-name",
            "existing_subnetwork",
            "regions/us-central1/subnetworks/NAME",
        ),
        (SUBNETWORK, SUBNETWORK, "not-a-network-name", "existing_network", "projects/PROJECT/global/networks/NAME"),
        (NETWORK, NETWORK, "not-a-network-name", "existing_subnetwork", "regions/us-central1/subnetworks/NAME"),
    ],
)
def test_mismatched_names_are_refused_with_a_remedy(network: str, subnetwork: str, rule: str, path: str, remedy: str) -> None:
    found = {each.rule: each for each in refusals(settings(network, subnetwork))}

    assert found[rule].path == f"network.{path}"
    assert remedy in found[rule].allowed
