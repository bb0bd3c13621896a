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
"""An object as the API server takes it: dicts, lists, texts, numbers."""

_FUSE_ANNOTATION = "gke-gcsfuse/volumes"
"""GKE adds the sidecar that mounts buckets to pods with it alone, whatever claims they have."""


def labels_of(place: Place, request: WorkloadRequest, sort: WorkloadType) -> dict[str, str]:
    """The labels of every object of a workload: whose it is, what it is, and the author's own."""
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
    """Whether the pods mount the team's checkpoint folder. The local platform has no bucket, and fake pods write nothing."""
    wanted = place.route.checkpoint if request.checkpoints is None else request.checkpoints
    return wanted and place.plan.cloud is not Platform.LOCAL


def own_folder(place: Place, request: WorkloadRequest, part: str = "") -> list[KubeObject]:
    """The variables that say where the checkpoints of a workload are, or of one independent part of it, and whose they are."""
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
    volumes: Sequence[Mapping[str, Any]] = (),
    mounts: Sequence[Mapping[str, Any]] = (),
    container: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    together: bool = False,
) -> KubeObject:
    """The template of a workload's pods, fit for restricted Pod Security and for the nodes of its class.

    The grace period is the route's, or the shorter one asked for; a preStop hook of `pre_stop_seconds` is inside it, and the program is
    told what remains. `env` goes before the derived variables of the same name, `volumes` and `mounts` come after the derived ones;
    `container` and `spec` add fields to the container (ports, probes) and to the pod (restartPolicy, subdomain). With `together` pods train
    together, and have the fast network where there is one.

    Raises WorkloadError for a hook that leaves no time, and for volumes of the author's own where the pod has others.
    """
    grace = place.grace_seconds
    if pre_stop_seconds >= grace:
        problem = f"leaves the program none of the {grace} seconds between the hook and the kill"
        at = SettingsProblem("pre_stop_seconds", str(pre_stop_seconds), problem, f"0 to {grace - 1} are allowed")
        raise WorkloadError(f"{sort} {request.name}", [at])
    storage = _Storage(place, request)
    fast = fast_network_for(place.pools, request, together=together)
    network = [{"name": name, "value": value} for name, value in fast.variables.items()]
    own_volumes, own_mounts = volumes_of(request.volumes)
    mounted = [*storage.mounts, *(dict(each) for each in mounts)]
    problems = mount_problems(request.volumes, (each["mountPath"] for each in mounted))
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
        "volumeMounts": [*mounted, *own_mounts],
        **(container or {}),
    }
    written = {**place.route.pod_annotations, **storage.annotations, **fast.annotations, **(annotations or {})}
    return {
        "metadata": {"labels": labels_of(place, request, sort), **({"annotations": written} if written else {})},
        "spec": {
            **placement(place),
            "serviceAccountName": SERVICE_ACCOUNT,
            # The cloud knows the pod without Kubernetes' token, and nothing in it has business with the API server.
            "automountServiceAccountToken": False,
            # Otherwise every Service of the namespace is in its environment, and a name such as MASTER_PORT may be another's.
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": grace,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": request.run_as_user,
                "runAsGroup": MOUNT_GROUP,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [main],
            "volumes": [*storage.volumes, *(dict(each) for each in volumes), *own_volumes],
            **({"imagePullSecrets": [{"name": each} for each in request.image_pull_secrets]} if request.image_pull_secrets else {}),
            **(spec or {}),
        },
    }


def placement(place: Place) -> KubeObject:
    """The fields by which pods find their nodes."""
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
    """The derived variables first, so that the author's may name them as $(NAME); those that the author gives are the author's."""
    # An id without an entry in the image's /etc/passwd has / as its home, where it may write nothing, and no name, which torch.compile and
    # vLLM ask for.
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
    # No limit on cpu: it would slow data loading down while the cores of a node that is paid for are idle.
    others = {**network, **dict(sorted(request.resources.items()))}
    return {"requests": {**amounts, **gpus, **others}, "limits": {"memory": amounts["memory"], **gpus, **others}}


class _Storage:
    """What every workload has mounted: /tmp, shared memory, and the buckets that it asks for."""

    def __init__(self, place: Place, request: WorkloadRequest) -> None:
        # Data loaders and NCCL exchange data in /dev/shm, of which a container has 64 MiB otherwise. The pod's memory limit bounds it.
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


_PYTHONS = ("python", "python3")


COORDINATOR = "JAX_COORDINATOR_ADDRESS"
"""jax.distributed.initialize reads it: jax 0.10.2, jax/_src/distributed.py (read 2026-11-26). How many processes there are, and which this
one is, it reads of no variable, so the program says both: num_processes=int(os.environ["NNODES"]), process_id=int(os.environ["NODE_RANK"]).
"""


def launched(request: JobRequest) -> JobRequest:
    """The request with the container's whole command."""
    before = {
        None: (),
        Launcher.RANKS: (*_LAUNCH, "--ranks=$(NPROC_PER_NODE)", "--"),
        Launcher.TORCHRUN: (*_LAUNCH, "--", "torchrun", *_RENDEZVOUS),
        Launcher.JAX: (*_LAUNCH, "--"),
        Launcher.RAY: (*_LAUNCH, "--", "python", "-m", "flexspot_runtime.ray", "--"),
    }[request.launcher]
    command = _of_torchrun(request.command) if request.launcher is Launcher.TORCHRUN else request.command
    return request.model_copy(update={"command": (*before, *command), "launcher": None}) if before else request


def _of_torchrun(command: tuple[str, ...]) -> tuple[str, ...]:
    """As torchrun takes a program: a script by its name, which it gives to Python itself, and anything else with --no-python."""
    if len(command) > 1 and command[0] in _PYTHONS and command[1].endswith(".py"):
        return command[1:]
    if command[0] in _PYTHONS and command[1:2] == ("-m",):
        return command[1:]
    return command if command[0].endswith(".py") else ("--no-python", *command)


def variables_of_launcher(request: JobRequest) -> list[KubeObject]:
    """Those that its framework reads, made of the variables by which pods meet, which come before them."""
    return [{"name": COORDINATOR, "value": "$(MASTER_ADDR):$(MASTER_PORT)"}] if request.launcher is Launcher.JAX else []


def success_of(request: JobRequest) -> dict[str, KubeObject]:
    """With Ray the first pod's program is all of the work, and its end that of the Job, whatever becomes of the other pods at that moment.

    One that is lost then would be made anew, and wait for a first pod that has done its work. Needs Kubernetes 1.31, where successPolicy is
    on by default (kubernetes.io, Job, Success policy; stable since 1.33).
    """
    return {"successPolicy": {"rules": [{"succeededIndexes": "0"}]}} if request.launcher is Launcher.RAY and request.pods > 1 else {}


def launcher_problems(request: JobRequest) -> list[SettingsProblem]:
    """A launcher without a program to start, or without a GPU to start it on."""
    if request.launcher is None:
        return []
    asked, problems = repr(request.launcher.value), list[SettingsProblem]()
    if not request.command:
        problem = "starts the program that command names, and there is none"
        problems.append(SettingsProblem("launcher", asked, problem, "give the command, such as -- python train.py"))
    if request.gpus == 0:
        problem = "starts processes on GPUs, and this work has none"
        problems.append(SettingsProblem("launcher", asked, problem, "leave it out"))
    return problems


JOBSET_GROUP = "pods"
"""The name of the one group of pods in a JobSet."""


def rendezvous(request: JobRequest) -> list[KubeObject]:
    """The variables by which the pods of a gang meet at pod 0, as torchrun's options and others' are called.

    The host name of an Indexed Job's pod is the job's name and its index, in the domain of the team's Service of gangs. A JobSet has a
    Service of its own, of its own name, which its controller makes.
    """
    first = f"{request.name}-{JOBSET_GROUP}-0-0.{request.name}" if request.jobset else f"{request.name}-0.{GANG_SERVICE}"
    return _meeting(request, first, request.pods, own_index("NODE_RANK"))


def alone(request: JobRequest) -> list[KubeObject]:
    """The same variables for a pod whose processes meet among themselves, so that one command serves one pod and several."""
    return _meeting(request, "127.0.0.1", 1, {"name": "NODE_RANK", "value": "0"})


def _meeting(request: JobRequest, first: str, pods: int, rank: KubeObject) -> list[KubeObject]:
    return [
        {"name": "MASTER_ADDR", "value": first},
        {"name": "MASTER_PORT", "value": str(request.port)},
        {"name": "NNODES", "value": str(pods)},
        rank,
        {"name": "NPROC_PER_NODE", "value": str(request.gpus)},
    ]


def own_index(variable: str) -> KubeObject:
    """A variable with the pod's index. JOB_COMPLETION_INDEX has it too, but comes last: no other variable could be made of it."""
    return {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX_ANNOTATION}']"}}}


def completions(request: JobRequest) -> KubeObject:
    """The variable that says how many pods the job has."""
    return {"name": COMPLETIONS_VARIABLE, "value": str(request.pods)}


def most_gpus(place: Place) -> int:
    """GPUs that the team can hold at once for work of this class: what it may run without a queue, or what its queue can give it.

    Each pod of a service is a decision of its own, so the flavors of a queue add up.
    """
    if place.queue is None:
        return place.team.most_unqueued(place.route.resource)
    flavors = {route_pool.flavor for route_pool in place.route.pools}
    return min(place.team.most(place.route.resource), sum(place.most_of(quota) for quota in place.quotas if quota.flavor in flavors))


def count_problems(place: Place, path: str, pods: int, gpus: int) -> list[SettingsProblem]:
    """What is wrong with so many pods of so many GPUs: the namespace's quota, or the queue, would never let the last ones start."""
    most = most_gpus(place)
    if pods * gpus <= most:
        return []
    where = "unqueued" if place.queue is None else "shares"
    problem = f"with {gpus} GPU(s) each is {pods * gpus} GPUs, and team {place.team.name} can have {most} for class "
    remedy = f"{most // gpus} at most, or give the team more in teams.{where}"
    return [SettingsProblem(path, str(pods), problem + place.route.workload_class, remedy)]


def as_job_request(request: WorkloadRequest, **more: Any) -> JobRequest:
    """The same request as one for a job; `more` are fields that only jobs have, or other values."""
    shared = {name: getattr(request, name) for name in WorkloadRequest.model_fields}
    return JobRequest.model_validate({**shared, **more})


def relabelled(job: KubeObject, sort: WorkloadType) -> KubeObject:
    """A Job of the core whose labels, and those of its pods, say that it is work of another sort."""
    for metadata in (job["metadata"], job["spec"]["template"]["metadata"]):
        metadata["labels"] = {**metadata["labels"], WORKLOAD_TYPE_LABEL: sort.value}
    return job


def selector_of(name: str, sort: WorkloadType) -> dict[str, str]:
    """The labels by which a Service, a budget or a Deployment finds the pods of one workload."""
    return {NAME_LABEL: name, WORKLOAD_TYPE_LABEL: sort.value}


def own_labels(template: KubeObject) -> dict[str, str]:
    """The labels of a template's pods, for the objects around them."""
    return dict(template["metadata"]["labels"])


def with_mounts(
    template: KubeObject,
    volumes: Sequence[Mapping[str, Any]],
    mounts: Sequence[Mapping[str, Any]],
    annotations: Mapping[str, str] | None = None,
) -> KubeObject:
    """The template with further volumes, mounted by the workload's own container, which stands first."""
    spec = template["spec"]
    main = spec["containers"][0]
    spec["volumes"] = [*spec.get("volumes", []), *(dict(each) for each in volumes)]
    main["volumeMounts"] = [*main.get("volumeMounts", []), *(dict(each) for each in mounts)]
    if annotations:
        template["metadata"]["annotations"] = {**template["metadata"].get("annotations", {}), **annotations}
    return template


def service_of(name: str, namespace: str, labels: Mapping[str, str], selector: Mapping[str, str], port_name: str) -> KubeObject:
    """A Service inside the cluster, on port 80, of the pods' port of that name. Nothing is open to the outside."""
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
