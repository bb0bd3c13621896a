"""What a preview says of a cluster beyond its inputs: whether GKE has a release for its version, and which of its limits would stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pulumi
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import get_monitor, monitor_supports_feature
from pulumi_gcp import container

from capacity.catalog.gke_limits import limits_that_go
from capacity.catalog.gke_versions import is_below
from capacity.catalog.versions import minor_version, version_order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi_gcp.container import GetEngineVersionsResult


_ENDINGS = {2: ".", 3: "-"}
"""What follows a version of so many numbers in its releases: 1.35 is no beginning of 1.350, nor 1.35.2 of 1.35.20."""


@dataclass(frozen=True)
class OfferedVersions:
    """What the release channels of a location offer of one version: by channel its newest release, and the default of all versions."""

    newest: Mapping[str, str]
    default: Mapping[str, str]


def offered_versions(location: str, project: str, version: str, parent: pulumi.Resource) -> pulumi.Output[OfferedVersions | None]:
    """What is on offer of `version`; None where nobody was asked, as in an offline preview.

    The provider answers the newest version of each channel that begins so (google-beta,
    data_source_google_container_engine_versions.go: strings.HasPrefix over the channel's valid versions; read 2026-11-26).
    """
    prefix = version + _ENDINGS.get(len(version_order(version)), "")
    options = pulumi.InvokeOutputOptions(parent=parent)
    return container.get_engine_versions_output(location=location, project=project, version_prefix=prefix, opts=options).apply(_offered)


def _offered(answer: GetEngineVersionsResult) -> OfferedVersions | None:
    newest: Mapping[str, str] | None = answer.release_channel_latest_version
    return None if newest is None else OfferedVersions(newest, answer.release_channel_default_version)


def refusal(version: str, channel: str, *, running: str | None, offered: OfferedVersions | None) -> str | None:
    """Why GKE would not take `version` for a cluster in `channel`, and what to say instead.

    None where the channel has a release of it, where nothing is known, and where the cluster, at `running`, needs none.
    """
    name = channel.upper()
    if offered is None or name in offered.newest or (running is not None and not is_below(running, version)):
        return None
    default = offered.default.get(name)
    remedy = f"its default is {default}: say {minor_version(default)!r}, or leave it out" if default else "leave it out"
    return f"min_version is {version!r}, and the channel {channel} offers no release of it; {remedy} (cluster.min_version)"


REMEDY = (
    "GKE is said to keep a limit that is taken out while node auto-provisioning is on, so that this one would stay, or the run stop there: "
    "name what has no pool any more, or boots from Hyperdisk alone, in `cluster.former_accelerators`"
)


def _tell(args: pulumi.ResourceHookArgs) -> None:
    if gone := limits_that_go(args.old_inputs, args.new_inputs):
        pulumi.log.warn(f"gpu-limit-removed: {', '.join(gone)}: {REMEDY}")


def limit_hook(name: str) -> pulumi.ResourceHookBinding | None:
    """The hook of a cluster's updates, in previews too. None where nobody calls hooks: an engine from before them, and mocks."""
    # Mocks say that they have them, and there is nobody behind them who would call.
    if isinstance(get_monitor(), MockMonitor) or not monitor_supports_feature(resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_HOOKS):
        return None
    hook = pulumi.ResourceHook(f"{name}-limits", _tell, pulumi.ResourceHookOptions(on_dry_run=True))
    return pulumi.ResourceHookBinding(before_update=[hook])
