"""Helm releases as the official Kubernetes provider has them: no chart is rendered, the release itself is kept in the cloud's folder.

What a chart installs is on the lab's control plane already (Kueue, Karpenter), or is not looked at by any test.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from cloud_folder import Held
from cloud_refusals import CloudRefusalError

if TYPE_CHECKING:
    from cloud_folder import CloudFolder
    from cluster_side import ClusterSide

RELEASE = "kubernetes:helm.sh/v3:Release"


class HelmReleases:
    """The releases on one cluster."""

    def __init__(self, cloud: CloudFolder, side: ClusterSide) -> None:
        self._cloud = cloud
        self._side = side

    def install(self, urn: str, inputs: dict[str, Any]) -> Held:
        """A new release. Raises CloudRefusalError where one of its name is installed."""
        held = _released(urn, inputs, 1)
        with self._cloud.changing():
            if self._cloud.get(RELEASE, held.identity) is not None:
                raise CloudRefusalError("cannot re-use a name that is still in use")
            self._cloud.put(held)
        self._side.bring(inputs["chart"].rpartition("/")[2])
        time.sleep(self._cloud.seconds(RELEASE))
        return held

    def get(self, identity: str) -> Held | None:
        """A release; None when there is none."""
        return self._cloud.get(RELEASE, identity)

    def upgrade(self, urn: str, identity: str, inputs: dict[str, Any]) -> Held:
        """A release with other values or another chart, as its next revision."""
        with self._cloud.changing():
            found = self._cloud.get(RELEASE, identity)
            if found is None:
                raise CloudRefusalError(f"release: not found: {identity}")
            held = _released(urn, inputs, found.outputs["status"]["revision"] + 1)
            self._cloud.put(held)
        return held

    def uninstall(self, identity: str) -> None:
        """Takes a release away, with the definitions that its chart brought."""
        held = self._cloud.get(RELEASE, identity)
        if held is None:
            return
        self._side.take_away(held.inputs["chart"].rpartition("/")[2])
        with self._cloud.changing():
            self._cloud.remove(RELEASE, identity)


def _released(urn: str, inputs: dict[str, Any], revision: int) -> Held:
    name, namespace = inputs["name"], inputs["namespace"]
    status = {
        "appVersion": inputs["version"],
        "chart": inputs["chart"].rpartition("/")[2],
        "name": name,
        "namespace": namespace,
        "revision": revision,
        "status": "deployed",
        "version": inputs["version"],
    }
    return Held(RELEASE, f"{namespace}/{name}", urn, inputs, {**inputs, "status": status, "resourceNames": {}})
