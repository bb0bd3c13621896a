"""Objects of a cluster as somebody would have written them: without what the API server, controllers and other owners add."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final, cast

from capacity.catalog.accelerators import RESOURCES
from policies.inventory.pod_gpus import POD_MAKERS
from policies.inventory.reading.source import pod_places
from policies.values.field import Field

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SERVERS: Final = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid", "deletionTimestamp")

_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

_DEFAULT_GRACE: Final = 30
"""What the API server writes where a pod says nothing; nobody can tell it from a 30 that somebody wrote.

https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#lifecycle
"""

_ADDED_TOLERATIONS: Final = ("node.kubernetes.io/", *RESOURCES)
"""Keys of the tolerations that the API server adds to pods: DefaultTolerationSeconds, and ExtendedResourceToleration on GKE and EKS."""

MANAGED: Final = ("kube-system", "kube-public", "kube-node-lease", "gke-", "gmp-", "gke-gmp-", "config-management-", "amazon-", "aws-")
"""How the names of namespaces begin whose objects the clouds keep: others cannot fix them."""


def is_managed(namespace: str) -> bool:
    """Whether a namespace is the cloud's."""
    return namespace in MANAGED[:3] or namespace.startswith(MANAGED[3:])


def is_anybodys(written: Mapping[str, Any]) -> bool:
    """Whether somebody declared the object: no other object made it, and its work is not over."""
    metadata = written["metadata"]
    if any(each.get("controller") for each in metadata.get("ownerReferences") or ()) or metadata.get("deletionTimestamp"):
        return False
    status = written.get("status") or {}
    ended = any(each.get("type") in {"Complete", "Failed", "Completed"} and each.get("status") == "True" for each in _conditions(status))
    return not ended and status.get("phase") not in {"Succeeded", "Failed"}


def _conditions(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [each for each in status.get("conditions") or () if isinstance(each, dict)]


def as_written(served: Mapping[str, Any]) -> dict[str, Any]:
    """The object without its status, what the server notes of it, and the defaults that would be taken for somebody's choice."""
    written = {key: copy.deepcopy(each) for key, each in served.items() if key != "status"}
    metadata = {key: each for key, each in written["metadata"].items() if key not in _SERVERS}
    if _APPLIED in (metadata.get("annotations") or {}):
        metadata["annotations"] = {key: each for key, each in metadata["annotations"].items() if key != _APPLIED}
    written["metadata"] = metadata
    for pod in _pods(written):
        if pod.get("terminationGracePeriodSeconds") == _DEFAULT_GRACE:
            del pod["terminationGracePeriodSeconds"]
        if written["kind"] == "Pod" and pod.get("tolerations"):
            pod["tolerations"] = [each for each in pod["tolerations"] if not str(each.get("key", "")).startswith(_ADDED_TOLERATIONS)]
    return written


def _pods(written: dict[str, Any]) -> Iterator[dict[str, Any]]:
    group = written["apiVersion"].rpartition("/")[0]
    maker = POD_MAKERS.get((group, written["kind"]))
    for path in maker.paths if maker else ():
        for _, pod, _, _ in pod_places(Field(written), path.split(".")):
            if isinstance(pod.value, dict):
                yield cast("dict[str, Any]", pod.value)
