"""The pod of a notebook: Jupyter's server, told to cull what is idle, and beside it what ends the whole when nobody works."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.workloads.notebook_stop import NOTEBOOK_VARIABLE, TOKEN_VARIABLE
from capacity.workloads.request import SecretKey
from capacity.workloads.service_pods import with_mounts

if TYPE_CHECKING:
    from capacity.workloads.notebook_request import NotebookRequest
    from capacity.workloads.notebook_watch import Watch
    from capacity.workloads.pods import KubeObject

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
