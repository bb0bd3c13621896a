"""Notebooks that cost nothing while they are idle: the pod with a sidecar that stops it, and the job or service around it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.catalog.workload_classes import Removal
from flexspot.capacity.plan.queues import KARPENTER_STAY_ANNOTATION, STAY_ANNOTATION
from flexspot.capacity.workloads.jobs import queued_job
from flexspot.capacity.workloads.notebook_stop import (
    CREDENTIALS_VARIABLE,
    IDLE_VARIABLE,
    LIMIT_VARIABLE,
    NIGHT_VARIABLE,
    NOTEBOOK_VARIABLE,
    SCALE_VARIABLE,
    TOKEN_VARIABLE,
)
from flexspot.capacity.workloads.place import find_place
from flexspot.capacity.workloads.pods import (
    KubeObject,
    as_job_request,
    count_problems,
    own_labels,
    pod_template,
    relabelled,
    selector_of,
    service_of,
    with_mounts,
)
from flexspot.capacity.workloads.requests import SERVICE_ACCOUNT, SecretKey, WorkloadType, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flexspot.capacity.plan.model import Plan
    from flexspot.capacity.workloads.place import Place
    from flexspot.capacity.workloads.requests import NotebookRequest


_SCRIPT = Path(__file__).with_name("notebook_stop.py")

_CREDENTIALS_VOLUME, _CREDENTIALS_PATH = "stop-credentials", "/var/run/flexspot"


@dataclass(frozen=True)
class Sidecar:
    """A sidecar container and the volumes that only it mounts."""

    container: KubeObject
    volumes: tuple[KubeObject, ...]


def scale_path(namespace: str, name: str) -> str:
    """Return the API path of a Deployment's replica count. Access to it allows no other change of the Deployment."""
    return f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"


def sidecar_of(request: NotebookRequest, place: Place | None = None) -> Sidecar:
    """Return the sidecar that stops an idle notebook. With a place, it scales the Deployment to zero, else it shuts down the server.

    It also does the nightly stop. A CronJob cannot: each Job of a team's namespace goes into the team's queue, and from there to a GPU
    node. That node would boot only to stop a notebook that may not even run (Kueue 0.19, jobframework/defaults.go, ApplyDefaultLocalQueue).
    """
    environment = {IDLE_VARIABLE: str(request.idle_seconds), NIGHT_VARIABLE: request.nightly_stop}
    mounts: list[dict[str, Any]] = []
    volumes: tuple[KubeObject, ...] = ()
    if place is not None:
        environment |= {SCALE_VARIABLE: scale_path(place.namespace, request.name), CREDENTIALS_VARIABLE: _CREDENTIALS_PATH}
        if place.route.max_run_seconds is not None:
            environment[LIMIT_VARIABLE] = str(place.route.max_run_seconds)
        mounts = [{"name": _CREDENTIALS_VOLUME, "mountPath": _CREDENTIALS_PATH, "readOnly": True}]
        volumes = (_credentials(),)
    container: KubeObject = {
        "name": "idle-stop",
        # The notebook's own image, which the node already has.
        "image": request.image,
        # A native sidecar does not prevent the Job of a finished server from completing.
        "restartPolicy": "Always",
        "command": ["python3", "-c", _SCRIPT.read_text(encoding="utf-8")],
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": mounts,
    }
    return Sidecar(container, volumes)


def _credentials() -> KubeObject:
    """Return a volume with what Kubernetes mounts automatically (token and CA certificate). Only one container mounts it."""
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]
    # Readable for the pod's fsGroup, because the files belong to root.
    return {"name": _CREDENTIALS_VOLUME, "projected": {"defaultMode": 0o440, "sources": sources}}


PORT, PORT_NAME = 8888, "notebook"

_CULL_SECONDS = 60
_START_SECONDS = 600


def notebook_container(request: NotebookRequest) -> NotebookRequest:
    """Return the request with the server's command, arguments, home and token.

    The server culls idle kernels and terminals first, including those with an open tab (`cull_connected`), but no busy kernel. Without any
    left it shuts itself down. Options of jupyter_server 2 and jupyter_server_terminals.
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
        # Reachable only in the pod network: the namespace's policy and the missing ingress exclude all others.
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


def with_notebook(template: KubeObject, request: NotebookRequest, watch: Sidecar) -> KubeObject:
    """Return the template of the server's pod with its home, port, probes and sidecar.

    The sidecar has the notebook's token. Code in the notebook has no access to the sidecar's credentials.
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
    # The only path that the server answers without the token.
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


_RBAC = "rbac.authorization.k8s.io"


def roles(place: Place, name: str, labels: Mapping[str, str]) -> tuple[KubeObject, ...]:
    """Return a role and a binding for each subject that needs a right.

    The sidecar of a Deployment may scale it. It acts as the service account of the team's workloads, whose token no other container in the
    pod has. A session's sidecar needs no rights. Submitters of the namespace may already create Jobs. Here they may also read the pattern
    of a session, or scale the Deployment.
    """
    may_start = [{"apiGroup": _RBAC, "kind": "Group", "name": group} for group in place.team.submitters]
    if place.queue is not None:
        start = [_rule("batch", "cronjobs", name, "get")]
        return _role(place, f"{name}-start", labels, start, may_start)
    account = {"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": place.namespace}
    start = [_rule("apps", "deployments", name, "get"), _rule("apps", "deployments/scale", name, "get", "patch", "update")]
    return (
        *_role(place, f"{name}-stop", labels, [_rule("apps", "deployments/scale", name, "patch")], [account]),
        *_role(place, f"{name}-start", labels, start, may_start),
    )


def _role(
    place: Place, name: str, labels: Mapping[str, str], rules: Sequence[KubeObject], subjects: Sequence[KubeObject]
) -> tuple[KubeObject, ...]:
    if not subjects:
        return ()
    version = f"{_RBAC}/v1"
    metadata: dict[str, Any] = {"name": name, "namespace": place.namespace, "labels": dict(labels)}
    reference = {"apiGroup": _RBAC, "kind": "Role", "name": name}
    return (
        {"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": list(rules)},
        {"apiVersion": version, "kind": "RoleBinding", "metadata": metadata, "roleRef": reference, "subjects": list(subjects)},
    )


def _rule(group: str, resource: str, name: str, *verbs: str) -> KubeObject:
    return {"apiGroups": [group], "resources": [resource], "resourceNames": [name], "verbs": list(verbs)}


def stay_annotations(place: Place) -> dict[str, str]:
    """Return the annotation that protects a notebook's pods from being moved, if one of their pools moves work.

    Pools whose nodes are removed when empty do not need it, and do not limit how long a drain waits for such a pod. On GKE Autopilot the
    annotation would turn the pod into another sort (extended run time), so it is absent there.
    """
    if not any(pool.removal is Removal.UNDERUTILIZED for pool in place.pools):
        return {}
    if place.plan.cloud is not Platform.GKE:
        return {KARPENTER_STAY_ANNOTATION: "true"}
    on_autopilot = any(pool.pool_label is None for pool in place.pools)
    return {} if on_autopilot else {STAY_ANNOTATION: "false"}


NOTEBOOK = "Notebook"

_NEVER = "0 0 1 1 *"
"""A schedule that a suspended CronJob must have and never follows."""

_KEPT_SECONDS = 60
"""Time until a finished session is deleted. It is short because the next session has the same name."""


def notebook(plan: Plan, request: NotebookRequest) -> tuple[KubeObject, ...]:
    """Return the disk, the Service, the rights to stop and start, and the object that creates the pod, in this order.

    In a class that waits in a queue, notebooks are sessions, because queues accept no Deployments. A suspended CronJob is the pattern. Each
    `kubectl create job NAME --from=cronjob/NAME` creates a Job that the queue admits, that ends when idle and then gives its quota back.
    Without a queue the notebook is a Deployment of one pod, started with `kubectl scale`. Raises WorkloadError if there is no place for the
    request.
    """
    place = find_place(plan, request, NOTEBOOK)
    if place.queue is None:
        refuse(f"{NOTEBOOK} {request.name}", count_problems(place, "gpus", 1, request.gpus))
        creator = _deployment(place, request)
        template = creator["spec"]["template"]
    else:
        creator = _sessions(plan, request)
        template = creator["spec"]["jobTemplate"]["spec"]["template"]
    if stay := stay_annotations(place):
        template["metadata"].setdefault("annotations", {}).update(stay)
    labels = own_labels(template)
    return (
        _home(place, request, labels),
        service_of(request.name, place.namespace, labels, selector_of(request.name, WorkloadType.NOTEBOOK), PORT_NAME),
        *roles(place, request.name, labels),
        creator,
    )


def _sessions(plan: Plan, request: NotebookRequest) -> KubeObject:
    as_job = as_job_request(notebook_container(request), keep_seconds=_KEPT_SECONDS)
    [created] = queued_job(plan, as_job)
    job = relabelled(created, WorkloadType.NOTEBOOK)
    with_notebook(job["spec"]["template"], request, sidecar_of(request))
    metadata = job["metadata"]
    own = {name: value for name, value in metadata.items() if name not in {"name", "namespace"}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": request.name, "namespace": metadata["namespace"], "labels": own_labels(job["spec"]["template"])},
        "spec": {
            "suspend": True,
            "schedule": _NEVER,
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {"metadata": own, "spec": job["spec"]},
        },
    }


def _deployment(place: Place, request: NotebookRequest) -> KubeObject:
    template = pod_template(place, notebook_container(request), WorkloadType.NOTEBOOK)
    with_notebook(template, request, sidecar_of(request, place))
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": request.name, "namespace": place.namespace, "labels": own_labels(template)},
        "spec": {
            # Created with no pod. An apply by kubectl stops it again; the component ignores the number.
            "replicas": 0,
            "selector": {"matchLabels": selector_of(request.name, WorkloadType.NOTEBOOK)},
            # The disk can be attached to one node only, so the old pod ends first.
            "strategy": {"type": "Recreate"},
            "revisionHistoryLimit": 1,
            "template": template,
        },
    }


def _home(place: Place, request: NotebookRequest, labels: Mapping[str, str]) -> KubeObject:
    storage_class = {} if request.storage_class is None else {"storageClassName": request.storage_class}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"{request.name}-home", "namespace": place.namespace, "labels": dict(labels)},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            **storage_class,
            "resources": {"requests": {"storage": f"{request.home_gib}Gi"}},
        },
    }
