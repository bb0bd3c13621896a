"""The container that ends a notebook in which nobody works: notebook_stop.py as text, and what it is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capacity.workloads.notebook_stop import (
    CREDENTIALS_VARIABLE,
    IDLE_VARIABLE,
    LIMIT_VARIABLE,
    NIGHT_VARIABLE,
    SCALE_VARIABLE,
)

if TYPE_CHECKING:
    from capacity.workloads.notebook_request import NotebookRequest
    from capacity.workloads.place import Place
    from capacity.workloads.pods import KubeObject

_SCRIPT = Path(__file__).with_name("notebook_stop.py")

_CREDENTIALS_VOLUME, _CREDENTIALS_PATH = "stop-credentials", "/var/run/flexspot"


@dataclass(frozen=True)
class Watch:
    """A container, and the volumes that it alone mounts."""

    container: KubeObject
    volumes: tuple[KubeObject, ...]


def scale_path(namespace: str, name: str) -> str:
    """Where Kubernetes is told how many pods a Deployment has, and nothing else of it."""
    return f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"


def watch_of(request: NotebookRequest, standing: Place | None = None) -> Watch:
    """The watch of a session, which shuts down the server; or of a Deployment at a place, which scales it to zero.

    The nightly stop is its business as well, and not a CronJob's: each Job of a team's namespace goes into the team's queue, and from there
    to a GPU node, which would be started to stop what may not even run (Kueue 0.19, jobframework/defaults.go, ApplyDefaultLocalQueue).
    """
    told = {IDLE_VARIABLE: str(request.idle_seconds), NIGHT_VARIABLE: request.nightly_stop}
    mounts: list[dict[str, Any]] = []
    volumes: tuple[KubeObject, ...] = ()
    if standing is not None:
        told |= {SCALE_VARIABLE: scale_path(standing.namespace, request.name), CREDENTIALS_VARIABLE: _CREDENTIALS_PATH}
        if standing.route.max_run_seconds is not None:
            told[LIMIT_VARIABLE] = str(standing.route.max_run_seconds)
        mounts = [{"name": _CREDENTIALS_VOLUME, "mountPath": _CREDENTIALS_PATH, "readOnly": True}]
        volumes = (_credentials(),)
    container: KubeObject = {
        "name": "idle-stop",
        # The notebook's own, which its node has anyway.
        "image": request.image,
        # A sidecar of Kubernetes' own sort: it does not keep the Job of an ended server from being complete.
        "restartPolicy": "Always",
        "command": ["python3", "-c", _SCRIPT.read_text(encoding="utf-8")],
        "env": [{"name": name, "value": value} for name, value in told.items()],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": mounts,
    }
    return Watch(container, volumes)


def _credentials() -> KubeObject:
    """What a pod has of itself where Kubernetes' token is mounted without being asked for, in a volume that one container mounts."""
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]
    # Readable for the pod's fsGroup: it belongs to root.
    return {"name": _CREDENTIALS_VOLUME, "projected": {"defaultMode": 0o440, "sources": sources}}
