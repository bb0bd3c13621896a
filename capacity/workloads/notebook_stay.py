"""What keeps an autoscaler from moving a notebook to save a node: a new pod has the files of the old one, and none of its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.planning.routes import STAY_ANNOTATION
from capacity.platform import Platform
from capacity.workload_class import Removal

if TYPE_CHECKING:
    from capacity.workloads.place import Place

KARPENTER_STAY_ANNOTATION = "karpenter.sh/do-not-disrupt"
"""On pods, with "true": Karpenter consolidates no node under them, and a drain of its own waits for them up to the pool's limit.

https://karpenter.sh/docs/concepts/disruption/#pod-level-controls
"""


def stay_annotations(place: Place) -> dict[str, str]:
    """The annotation of a notebook's pods where a pool that they may run on has its work moved; none elsewhere.

    Pools whose nodes go when empty need none, and are without a limit to how long a drain waits for such a pod. On GKE Autopilot the
    annotation would change what sort of pod it is (extended run time), so it is left out there.
    """
    if not any(pool.removal is Removal.UNDERUTILIZED for pool in place.pools):
        return {}
    if place.plan.cloud is not Platform.GKE:
        return {KARPENTER_STAY_ANNOTATION: "true"}
    on_autopilot = any(pool.pool_label is None for pool in place.pools)
    return {} if on_autopilot else {STAY_ANNOTATION: "false"}
