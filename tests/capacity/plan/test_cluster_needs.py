"""What a cluster that is there already must have, from the settings and the plan."""

from __future__ import annotations

from typing import Any

from settings_documents import changed

from capacity.plan.build import build_plan
from capacity.plan.cluster_needs import ClusterNeeds, VersionNeed, cluster_needs
from capacity.settings.cluster import GkeMode
from capacity.settings.platform import GkeSettings
from capacity.settings.stack_file import parse_settings

KUEUE = VersionNeed("1.29", "Kueue 0.19.0")


def needs(**changes: Any) -> ClusterNeeds:
    written = {"cluster": {"existing": "shared"}, **{path.replace("__", "."): value for path, value in changes.items()}}
    settings = parse_settings(changed("gke", written), "settings")
    assert isinstance(settings, GkeSettings)
    return cluster_needs(settings, build_plan(settings))


def test_a_version_is_needed_for_what_a_pool_asks_for_and_for_kueue() -> None:
    assert needs().versions == (KUEUE,)
    assert needs(pools__0__shutdown_grace_seconds=120).versions == (
        VersionNeed("1.35.0-gke.1171000", "pools.0.shutdown_grace_seconds (l4-spot: 120)"),
        KUEUE,
    )


def test_a_kueue_that_is_there_has_its_version_already() -> None:
    assert needs(queueing={"existing_kueue": True}).versions == ()


def test_a_kueue_of_ones_own_choice_is_named() -> None:
    assert needs(controllers={"kueue": {"version": "0.19.2"}}).versions == (VersionNeed("1.29", "Kueue 0.19.2"),)


def test_a_pool_in_a_compute_class_needs_a_version_that_has_them() -> None:
    fallen = needs(classes={"interactive": {"fallback": "stock-out"}}, pools__0__serves=["interactive"])

    assert fallen.versions == (VersionNeed("1.30.3-gke.1451000", "pools.0.serves (l4-spot: the compute class interactive)"), KUEUE)


def test_room_is_what_the_pools_may_come_to_in_gkes_words() -> None:
    # Four g2-standard-8, with 8 vCPU, 32 GiB and an L4 each.
    assert needs(pools__0__max_nodes=4).room == {"cpu": 32, "memory": 128, "nvidia-l4": 4}


def test_on_autopilot_no_limit_of_the_cluster_holds_pools_back() -> None:
    found = needs(cluster={"existing": "shared", "mode": "autopilot"})

    assert (found.mode, found.room) == (GkeMode.AUTOPILOT, {})
