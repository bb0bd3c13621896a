"""What is told of an update of a cluster within the engine itself, so that a plain `pulumi preview` or `up` says it too."""

from __future__ import annotations

import pulumi
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import get_monitor, monitor_supports_feature

from capacity.catalog.gke_limits import limits_that_go

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
