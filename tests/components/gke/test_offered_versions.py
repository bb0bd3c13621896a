"""Versions that a release channel offers, from the provider's data source. A version that GKE would reject is refused."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest
from component_outputs import outputs_of
from engine_versions import OFFERED, TOKEN, engine_versions
from gke_cluster_args import CLUSTER, Cloud, Nothing, args

from flexspot.components.gke.cluster import GkeCluster


class OfferingGke(Nothing):
    """A project without the cluster, whose GKE returns the versions that it offers."""

    def __init__(self) -> None:
        self.prefixes: list[str] = []

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        assert args.token == TOKEN
        self.prefixes.append(args.args["versionPrefix"])
        return engine_versions(args.args), []


class Running(OfferingGke):
    """A project whose cluster runs a version."""

    def __init__(self, version: str) -> None:
        super().__init__()
        self._version = version

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        identity, outputs = Cloud.new_resource(self, args)
        return identity, outputs | ({"masterVersion": self._version} if args.typ == CLUSTER else {})


def made(cloud: pulumi.runtime.Mocks, *, preview: bool = True, **changes: Any) -> dict[str, Any]:
    return outputs_of(cloud, lambda: GkeCluster("gke", args(**changes)), preview=preview)


def refused(cloud: pulumi.runtime.Mocks, **changes: Any) -> str:
    with pytest.raises(pulumi.RunError) as error:
        made(cloud, **changes)
    return str(error.value)


@pytest.mark.parametrize(
    "version,prefix,channel",
    [
        ("1.35", "1.35.", "stable"),
        ("1.35.2", "1.35.2-", "stable"),
        ("1.35.2-gke.1860000", "1.35.2-gke.1860000", "regular"),
        ("1.30", "1.30.", "extended"),
    ],
)
def test_a_version_with_a_release_in_the_channel_is_accepted(version: str, prefix: str, channel: str) -> None:
    cloud = OfferingGke()

    assert made(cloud, min_version=version, release_channel=channel)["cluster_name"] == "prod"
    assert cloud.prefixes == [prefix]


@pytest.mark.parametrize("version", ["1.28", "1.30", "1.37", "1.3", "1.35.9", "1.35.2-gke.9"])
def test_a_version_without_a_release_in_the_channel_is_refused_with_the_channels_default(version: str) -> None:
    message = refused(OfferingGke(), min_version=version, release_channel="stable")

    assert message == (
        f"GkeCluster gke: min_version (is '{version}'): the channel stable offers no release of it; use '1.33' (its default is "
        f"{OFFERED['STABLE'][-1]}), or leave it out (cluster.min_version)"
    )


def test_a_newer_cluster_needs_no_release_of_its_minimum_version() -> None:
    """A channel advances while the stack file stays the same: a version that was offered at the cluster's creation no longer is."""
    assert made(Running("1.35.2-gke.1860000"), min_version="1.32", release_channel="stable", preview=False)["cluster_name"] == "prod"


def test_an_upgrade_to_a_version_that_the_channel_lacks_is_refused() -> None:
    assert "the channel stable offers no release of it" in refused(
        Running("1.35.2-gke.1860000"), min_version="1.36", release_channel="stable", preview=False
    )


def test_without_a_version_gke_is_not_asked() -> None:
    cloud = OfferingGke()

    assert made(cloud)["cluster_name"] == "prod"
    assert cloud.prefixes == []


def test_offline_no_version_is_known_and_none_is_refused() -> None:
    assert made(Nothing(), min_version="1.28")["cluster_name"] == "prod"
