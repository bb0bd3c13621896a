"""The pod of a notebook: Jupyter's server, which stops idle kernels, and a sidecar that ends the pod when nobody uses it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capacity.workloads.notebook_stop import (
    CREDENTIALS_VARIABLE,
    IDLE_VARIABLE,
    LIMIT_VARIABLE,
    NIGHT_VARIABLE,
    NOTEBOOK_VARIABLE,
    SCALE_VARIABLE,
    TOKEN_VARIABLE,
)
from capacity.workloads.requests import SecretKey
from capacity.workloads.services import with_mounts

if TYPE_CHECKING:
    from capacity.workloads.place import Place
    from capacity.workloads.pods import KubeObject
    from capacity.workloads.requests import NotebookRequest


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


PORT, PORT_NAME = 8888, "notebook"

_CULL_SECONDS = 60
_START_SECONDS = 600


def notebook_container(request: NotebookRequest) -> NotebookRequest:
    """The request with the server's command, its arguments, its home and its token.

    Kernels and terminals are culled first, those of an open tab too (`cull_connected`), but no kernel that is at work; a server without any
    shuts itself down. Options of jupyter_server 2 and jupyter_server_terminals.
    """
    token = SecretKey(secret=request.token_secret or f"{request.name}-token", key="token")
    return request.model_copy(
        update={
            "command": request.command or ("jupyter", "lab"),
            "args": (*_options(request), *request.args),
            "env": {"HOME": request.home, **request.env},
            "secrets": {TOKEN_VARIABLE: token, **request.secrets},
        }
    )


def _options(request: NotebookRequest) -> tuple[str, ...]:
    idle = request.idle_seconds
    return (
        # In the pod's network alone: its namespace's policy and the missing ingress keep everybody else out.
        "--ip=0.0.0.0",
        f"--port={PORT}",
        "--ServerApp.port_retries=0",
        "--no-browser",
        f"--ServerApp.root_dir={request.home}",
        f"--ServerApp.shutdown_no_activity_timeout={idle}",
        f"--MappingKernelManager.cull_idle_timeout={idle}",
        f"--MappingKernelManager.cull_interval={_CULL_SECONDS}",
        "--MappingKernelManager.cull_connected=True",
        f"--TerminalManager.cull_inactive_timeout={idle}",
        f"--TerminalManager.cull_interval={_CULL_SECONDS}",
    )


def with_notebook(template: KubeObject, request: NotebookRequest, watch: Watch) -> KubeObject:
    """The template of the server's pod with its home, its port, its probes and its watch.

    The watch has the notebook's token; what people run in the notebook has nothing of the watch's.
    """
    with_mounts(
        template,
        [{"name": "home", "persistentVolumeClaim": {"claimName": f"{request.name}-home"}}],
        [{"name": "home", "mountPath": request.home}],
    )
    spec = template["spec"]
    # A new disk belongs to root.
    spec["securityContext"] |= {"fsGroup": request.run_as_user, "fsGroupChangePolicy": "OnRootMismatch"}
    main = spec["containers"][0]
    # The one path that the server answers without the token.
    answers = {"httpGet": {"path": "/api", "port": PORT_NAME}, "periodSeconds": 10}
    main["ports"] = [{"name": PORT_NAME, "containerPort": PORT, "protocol": "TCP"}]
    main["startupProbe"] = {**answers, "failureThreshold": _START_SECONDS // 10}
    main["readinessProbe"] = answers
    token = next(each for each in main["env"] if each["name"] == TOKEN_VARIABLE)
    address = {"name": NOTEBOOK_VARIABLE, "value": f"http://127.0.0.1:{PORT}"}
    sidecar = {**watch.container, "env": [address, token, *watch.container["env"]]}
    spec["initContainers"] = [*spec.get("initContainers", []), sidecar]
    spec["volumes"] += [dict(each) for each in watch.volumes]
    return template
