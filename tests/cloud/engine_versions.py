"""The data source google_container_engine_versions as the provider answers it, with invented GKE versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

TOKEN = "gcp:container/getEngineVersions:getEngineVersions"  # noqa: S105 -- a function's

OFFERED: dict[str, tuple[str, ...]] = {
    "RAPID": ("1.36.1-gke.1002000", "1.35.4-gke.1001000"),
    "REGULAR": ("1.35.3-gke.1400000", "1.35.2-gke.1860000", "1.34.6-gke.1100000"),
    "STABLE": ("1.35.2-gke.1860000", "1.34.5-gke.1300000", "1.33.9-gke.1000000"),
    "EXTENDED": ("1.35.2-gke.1860000", "1.34.6-gke.1100000", "1.32.11-gke.1200000", "1.30.14-gke.1500000"),
}
"""Valid versions of each channel, newest first as GKE lists them. The last is the channel's default."""


def engine_versions(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the versions.

    As in google-beta's data_source_google_container_engine_versions.go, the newest version of a channel is the first that begins with the
    prefix. A channel without a match is omitted, and the default ignores the prefix.
    """
    prefix = args.get("versionPrefix") or ""
    valid = sorted({each for versions in OFFERED.values() for each in versions if each.startswith(prefix)}, reverse=True)
    newest = {channel: next((each for each in versions if each.startswith(prefix)), None) for channel, versions in OFFERED.items()}
    return {
        **args,
        "id": "2026-11-26T08:00:00Z",
        "defaultClusterVersion": OFFERED["REGULAR"][-1],
        "latestMasterVersion": next(iter(valid), ""),
        "latestNodeVersion": next(iter(valid), ""),
        "validMasterVersions": valid,
        "validNodeVersions": valid,
        "releaseChannelDefaultVersion": {channel: versions[-1] for channel, versions in OFFERED.items()},
        "releaseChannelLatestVersion": {channel: version for channel, version in newest.items() if version is not None},
        "releaseChannelUpgradeTargetVersion": {channel: version for channel, version in newest.items() if version is not None},
    }
