"""The pod template of every kind of workload, how its program is launched, and how pods of a gang meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexspot.capacity.catalog.node_labels import CLASS_LABEL, PROJECT_LABEL, TEAM_LABEL, WORKLOAD_TYPE_LABEL
from flexspot.capacity.catalog.platform import MOUNT_GROUP, USER_NAME, Platform
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.values.quantities import count_quantity
from flexspot.capacity.workloads.fast_network import fast_network_for
from flexspot.capacity.workloads.inputs import environment_of, mount_problems, variables_of, volumes_of
from flexspot.capacity.workloads.requests import (
    CHECKPOINT_CLAIM,
    CHECKPOINT_PATH,
    CHECKPOINT_VARIABLE,
    COMPLETIONS_VARIABLE,
    CONTAINER,
    DATASET_CLAIM,
    DATASET_PATH,
    GANG_SERVICE,
    GRACE_VARIABLE,
    INDEX_ANNOTATION,
    JOB_VARIABLE,
    NAME_LABEL,
    SERVICE_ACCOUNT,
    JobRequest,
    Launcher,
    WorkloadError,
    WorkloadRequest,
    WorkloadType,
    refuse,
)
from flexspot.capacity.workloads.suitable_pools import requests_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flexspot.capacity.workloads.place import Place


KubeObject = dict[str, Any]
"""An object as the API server accepts it: dicts, lists, texts, numbers."""

_FUSE_ANNOTATION = "gke-gcsfuse/volumes"
"""GKE adds the sidecar that mounts buckets only to pods with this annotation, whatever claims they have."""


def labels_of(place: Place, request: WorkloadRequest, sort: WorkloadType) -> dict[str, str]:
    """Return the labels of every object of a workload: its owner, its kind, and the author's labels."""
    return {
        **request.labels,
        **place.plan.labels,
        TEAM_LABEL: place.team.name,
        CLASS_LABEL: place.route.workload_class,
        WORKLOAD_TYPE_LABEL: sort.value,
        NAME_LABEL: request.name,
        **({PROJECT_LABEL: request.project} if request.project else {}),
    }


def keeps_checkpoints(place: Place, request: WorkloadRequest) -> bool:
    """Return whether the pods mount the team's checkpoint folder.

    False on the local platform: it has no bucket, and fake pods write nothing.
    """
    wanted = place.route.checkpoint if request.checkpoints is None else request.checkpoints
    return wanted and place.plan.cloud is not Platform.LOCAL


def own_folder(place: Place, request: WorkloadRequest, part: str = "") -> list[KubeObject]:
    """Return the variables with the checkpoint folder of a workload, or of one independent part of it, and with the job that owns it."""
    folder = request.checkpoint_folder or request.name
    if part:
        folder = f"{folder}/{part}"
    return [
        {"name": CHECKPOINT_VARIABLE, "value": f"{CHECKPOINT_PATH}/{folder}"},
        {"name": JOB_VARIABLE, "value": f"{place.team.name}/{folder}"},
    ]


def pod_template(  # noqa: PLR0913 -- what differs between kinds, given by name
    place: Place,
    request: WorkloadRequest,
    sort: WorkloadType,
    *,
    pre_stop_seconds: int = 0,
    env: Sequence[Mapping[str, Any]] = (),
    container: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    together: bool = False,
) -> KubeObject:
    """Return the template of a workload's pods, which meets restricted Pod Security and fits the nodes of its class.

    The grace period is the route's, or a shorter one if requested. It includes a preStop hook of `pre_stop_seconds`, and a variable gives
    the program the rest. `env` takes precedence over derived variables of the same name. `container` and `spec` add fields to the container
    (ports, probes) and to the pod (restartPolicy, subdomain). With `together` the pods train together, and use the fast network where there
    is one.

    Raises WorkloadError if the hook leaves no time, or if a volume of the author is where the pod has another one.
    """
    grace = place.grace_seconds
    if pre_stop_seconds >= grace:
        problem = f"leaves the program no time before the kill, {grace} seconds after the hook starts"
        at = SettingsProblem("pre_stop_seconds", str(pre_stop_seconds), problem, f"allowed: 0 to {grace - 1}")
        raise WorkloadError(f"{sort} {request.name}", [at])
    storage = _Storage(place, request)
    fast = fast_network_for(place.pools, request, together=together)
    network = [{"name": name, "value": value} for name, value in fast.variables.items()]
    own_volumes, own_mounts = volumes_of(request.volumes)
    problems = mount_problems(request.volumes, (each["mountPath"] for each in storage.mounts))
    refuse(f"{sort} {request.name}", problems)
    main: KubeObject = {
        "name": CONTAINER,
        "image": request.image,
        **({"command": list(request.command)} if request.command else {}),
        **({"args": list(request.args)} if request.args else {}),
        "env": _env(request, grace - pre_stop_seconds, [*env, *network, *storage.env]),
        **({"envFrom": environment_of(request.env_from)} if request.env_from else {}),
        "resources": _resources(place, request, fast.resources),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": not request.writable_root,
        },
        **({"lifecycle": {"preStop": {"sleep": {"seconds": pre_stop_seconds}}}} if pre_stop_seconds else {}),
        "volumeMounts": [*storage.mounts, *own_mounts],
        **(container or {}),
    }
    written = {**place.route.pod_annotations, **storage.annotations, **fast.annotations}
    return {
        "metadata": {"labels": labels_of(place, request, sort), **({"annotations": written} if written else {})},
        "spec": {
            **placement(place),
            "serviceAccountName": SERVICE_ACCOUNT,
            # The cloud identifies the pod without Kubernetes' token, and no program in it needs the API server.
            "automountServiceAccountToken": False,
            # Otherwise the environment contains every Service of the namespace, and a name such as MASTER_PORT may be another's.
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": grace,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": request.run_as_user,
                "runAsGroup": MOUNT_GROUP,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [main],
            "volumes": [*storage.volumes, *own_volumes],
            **({"imagePullSecrets": [{"name": each} for each in request.image_pull_secrets]} if request.image_pull_secrets else {}),
            **(spec or {}),
        },
    }


def placement(place: Place) -> KubeObject:
    """Return the fields that select and tolerate nodes."""
    route = place.route
    fields: KubeObject = {"priorityClassName": route.priority_class}
    if route.node_selector:
        fields["nodeSelector"] = dict(route.node_selector)
    if route.node_affinity is not None:
        key, values = route.node_affinity
        pools = {key: list(values)}
        wanted = [{**pools, **{each: [value] for each, value in labels.items()}} for labels in place.flavor_labels] or [pools]
        terms = [{"matchExpressions": [{"key": each, "operator": "In", "values": own} for each, own in one.items()]} for one in wanted]
        fields["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    tolerations = [{"key": each.key, "operator": "Equal", "value": each.value, "effect": each.effect.value} for each in route.tolerations]
    return fields | ({"tolerations": tolerations} if tolerations or route.pools else {})


def _env(request: WorkloadRequest, grace_seconds: int, derived: Sequence[Mapping[str, Any]]) -> list[KubeObject]:
    """Return the derived variables, then the author's.

    The author's may refer to derived ones as $(NAME), and replace those of the same name.
    """
    # A user id without an entry in the image's /etc/passwd has / as its home, where it may not write. It has no name either, which
    # torch.compile and vLLM need.
    home = {"name": "HOME", "value": "/tmp"}  # noqa: S108 -- the pod's own
    user = {"name": "USER", "value": USER_NAME}
    own = [{"name": name, "value": value} for name, value in sorted(request.env.items())]
    from_others = variables_of(request.secrets, request.config_maps)
    written = {*request.env, *request.secrets, *request.config_maps}
    grace = {"name": GRACE_VARIABLE, "value": str(grace_seconds)}
    first: dict[str, KubeObject] = {}
    for each in (grace, home, user, *derived):
        first.setdefault(str(each["name"]), dict(each))
    return [*(each for name, each in first.items() if name not in written), *own, *from_others]


def _resources(place: Place, request: WorkloadRequest, network: Mapping[str, str]) -> KubeObject:
    amounts = requests_of(place.plan, place.pools, request)
    gpus = {place.route.resource: count_quantity(request.gpus)} if request.gpus else {}
    # No limit on cpu: it would slow down data loading while cores of a paid node are idle.
    others = {**network, **dict(sorted(request.resources.items()))}
    return {"requests": {**amounts, **gpus, **others}, "limits": {"memory": amounts["memory"], **gpus, **others}}


class _Storage:
    """The standard mounts of every workload: /tmp, shared memory, and the requested buckets."""

    def __init__(self, place: Place, request: WorkloadRequest) -> None:
        # Data loaders and NCCL exchange data in /dev/shm. By default a container has only 64 MiB of it. The pod's memory limit bounds it.
        self.volumes: list[KubeObject] = [
            {"name": "scratch", "emptyDir": {}},
            {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
        ]
        self.mounts: list[KubeObject] = [
            {"name": "scratch", "mountPath": "/tmp"},  # noqa: S108 -- the pod's own
            {"name": "shared-memory", "mountPath": "/dev/shm"},  # noqa: S108 -- the pod's own
        ]
        self.env: list[KubeObject] = []
        self.annotations: dict[str, str] = {}
        if keeps_checkpoints(place, request):
            self._claim(place, CHECKPOINT_CLAIM, CHECKPOINT_PATH, read_only=False)
            self.env += own_folder(place, request)
        if request.datasets:
            self._claim(place, DATASET_CLAIM, DATASET_PATH, read_only=True)

    def _claim(self, place: Place, claim: str, path: str, *, read_only: bool) -> None:
        if place.plan.cloud is Platform.GKE:
            self.annotations[_FUSE_ANNOTATION] = "true"
        only = {"readOnly": True} if read_only else {}
        self.volumes.append({"name": claim, "persistentVolumeClaim": {"claimName": claim, **only}})
        self.mounts.append({"name": claim, "mountPath": path, **only})


_LAUNCH = ("python", "-m", "flexspot_runtime.launch")


_RENDEZVOUS = (
    "--nnodes=$(NNODES)",
    "--nproc-per-node=$(NPROC_PER_NODE)",
    "--node-rank=$(NODE_RANK)",
    "--master-addr=$(MASTER_ADDR)",
    "--master-port=$(MASTER_PORT)",
)


_INTERPRETERS = ("python", "python3")


COORDINATOR = "JAX_COORDINATOR_ADDRESS"
"""Variable that jax.distributed.initialize reads: jax 0.10.2, jax/_src/distributed.py (read 2026-11-26).

It reads no variable for the number of processes and the rank. The program passes both: num_processes=int(os.environ["NNODES"]),
process_id=int(os.environ["NODE_RANK"]).
"""


def launched(request: JobRequest) -> JobRequest:
    """Return the request with the container's complete command."""
    before = {
        None: (),
        Launcher.RANKS: (*_LAUNCH, "--ranks=$(NPROC_PER_NODE)", "--"),
        Launcher.TORCHRUN: (*_LAUNCH, "--", "torchrun", *_RENDEZVOUS),
        Launcher.JAX: (*_LAUNCH, "--"),
        Launcher.RAY: (*_LAUNCH, "--", "python", "-m", "flexspot_runtime.ray", "--"),
    }[request.launcher]
    command = _torchrun_arguments(request.command) if request.launcher is Launcher.TORCHRUN else request.command
    return request.model_copy(update={"command": (*before, *command), "launcher": None}) if before else request


def _torchrun_arguments(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command as torchrun's arguments: a script by name, which torchrun passes to Python, and anything else with --no-python."""
    if len(command) > 1 and command[0] in _INTERPRETERS and command[1].endswith(".py"):
        return command[1:]
    if command[0] in _INTERPRETERS and command[1:2] == ("-m",):
        return command[1:]
    return command if command[0].endswith(".py") else ("--no-python", *command)


def variables_of_launcher(request: JobRequest) -> list[KubeObject]:
    """Return the variables that the launcher's framework reads. They refer to those of the rendezvous, which must come first."""
    return [{"name": COORDINATOR, "value": "$(MASTER_ADDR):$(MASTER_PORT)"}] if request.launcher is Launcher.JAX else []


def success_of(request: JobRequest) -> dict[str, KubeObject]:
    """Return the success policy of a job with Ray, which succeeds when the program in its first pod does, whatever happens to the others.

    Otherwise a pod lost at that moment would be recreated, and wait for a first pod that is finished. Needs Kubernetes 1.31, where
    successPolicy is on by default (kubernetes.io, Job, Success policy; stable since 1.33).
    """
    return {"successPolicy": {"rules": [{"succeededIndexes": "0"}]}} if request.launcher is Launcher.RAY and request.pods > 1 else {}


def launcher_problems(request: JobRequest) -> list[SettingsProblem]:
    """Return the problems of a launcher without a program to start, or without a GPU to start it on."""
    if request.launcher is None:
        return []
    asked, problems = repr(request.launcher.value), list[SettingsProblem]()
    if not request.command:
        problem = "starts the program in command, and command is missing"
        problems.append(SettingsProblem("launcher", asked, problem, "add the command, such as -- python train.py"))
    if request.gpus == 0:
        problem = "starts processes on GPUs, but this work has no GPUs"
        problems.append(SettingsProblem("launcher", asked, problem, "leave it out"))
    return problems


JOBSET_GROUP = "pods"
"""Name of the only group of pods in a JobSet."""


def rendezvous(request: JobRequest) -> list[KubeObject]:
    """Return the variables with which the pods of a gang meet at pod 0, named as torchrun's options and others'.

    The host name of an Indexed Job's pod is the job's name and its index, in the domain of the team's Service for gangs. A JobSet has a
    separate Service with its own name, created by its controller.
    """
    first = f"{request.name}-{JOBSET_GROUP}-0-0.{request.name}" if request.jobset else f"{request.name}-0.{GANG_SERVICE}"
    return _rendezvous_variables(request, first, request.pods, own_index("NODE_RANK"))


def single_pod_rendezvous(request: JobRequest) -> list[KubeObject]:
    """Return the same variables for a single pod, whose processes meet locally, so that one command works for one pod and several."""
    return _rendezvous_variables(request, "127.0.0.1", 1, {"name": "NODE_RANK", "value": "0"})


def _rendezvous_variables(request: JobRequest, first: str, pods: int, rank: KubeObject) -> list[KubeObject]:
    return [
        {"name": "MASTER_ADDR", "value": first},
        {"name": "MASTER_PORT", "value": str(request.port)},
        {"name": "NNODES", "value": str(pods)},
        rank,
        {"name": "NPROC_PER_NODE", "value": str(request.gpus)},
    ]


def own_index(variable: str) -> KubeObject:
    """Return a variable with the pod's index. JOB_COMPLETION_INDEX has it too, but comes last, so no other variable can refer to it."""
    return {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX_ANNOTATION}']"}}}


def completions(request: JobRequest) -> KubeObject:
    """Return the variable with the number of the job's pods."""
    return {"name": COMPLETIONS_VARIABLE, "value": str(request.pods)}


def most_gpus(place: Place) -> int:
    """Return the GPUs that the team can use at once for work of this class: its unqueued quota, or what its queue can give it.

    Each pod of a service is placed separately, so the flavors of a queue add up.
    """
    if place.queue is None:
        return place.team.most_unqueued(place.route.resource)
    flavors = {route_pool.flavor for route_pool in place.route.pools}
    return min(place.team.most(place.route.resource), sum(place.most_of(quota) for quota in place.quotas if quota.flavor in flavors))


def count_problems(place: Place, path: str, pods: int, gpus: int) -> list[SettingsProblem]:
    """Return the problem of too many pods: the namespace's quota, or the queue, would never let the last ones start."""
    most = most_gpus(place)
    if pods * gpus <= most:
        return []
    where = "unqueued" if place.queue is None else "shares"
    problem = f"need {pods * gpus} GPUs ({gpus} each), but team {place.team.name} can use {most} for class "
    remedy = f"use {most // gpus} at most, or give the team more in teams.{where}"
    return [SettingsProblem(path, str(pods), problem + place.route.workload_class, remedy)]


def as_job_request(request: WorkloadRequest, **more: Any) -> JobRequest:
    """Return the same request as one for a job. `more` are fields that only jobs have, or values that replace the request's."""
    shared = {name: getattr(request, name) for name in WorkloadRequest.model_fields}
    return JobRequest.model_validate({**shared, **more})


def relabelled(job: KubeObject, sort: WorkloadType) -> KubeObject:
    """Return a Job whose labels, and those of its pods, name another type of workload."""
    for metadata in (job["metadata"], job["spec"]["template"]["metadata"]):
        metadata["labels"] = {**metadata["labels"], WORKLOAD_TYPE_LABEL: sort.value}
    return job


def selector_of(name: str, sort: WorkloadType) -> dict[str, str]:
    """Return the labels by which a Service, a budget or a Deployment selects the pods of one workload."""
    return {NAME_LABEL: name, WORKLOAD_TYPE_LABEL: sort.value}


def own_labels(template: KubeObject) -> dict[str, str]:
    """Return the labels of a template's pods, for the objects around them."""
    return dict(template["metadata"]["labels"])


def with_mounts(
    template: KubeObject,
    volumes: Sequence[Mapping[str, Any]],
    mounts: Sequence[Mapping[str, Any]],
    annotations: Mapping[str, str] | None = None,
) -> KubeObject:
    """Return the template with additional volumes, mounted by the workload's own container, which is the first."""
    spec = template["spec"]
    main = spec["containers"][0]
    spec["volumes"] = [*spec.get("volumes", []), *(dict(each) for each in volumes)]
    main["volumeMounts"] = [*main.get("volumeMounts", []), *(dict(each) for each in mounts)]
    if annotations:
        template["metadata"]["annotations"] = {**template["metadata"].get("annotations", {}), **annotations}
    return template


def service_of(name: str, namespace: str, labels: Mapping[str, str], selector: Mapping[str, str], port_name: str) -> KubeObject:
    """Return a Service inside the cluster: port 80 leads to the pods' port of that name. It is not reachable from outside."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {
            "type": "ClusterIP",
            "selector": dict(selector),
            "ports": [{"name": port_name, "port": 80, "targetPort": port_name, "protocol": "TCP"}],
        },
    }
