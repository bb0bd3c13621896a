"""Rules about pods that request GPUs, or should."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.catalog.node_labels import COMPUTE_CLASS_LABEL, GPU_RESOURCE
from flexspot.capacity.values.verdict import NOT_APPLICABLE, PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.objects import ComputeClassView, KubernetesObject
from flexspot.policies.inventory.pod_gpus import GPU_PREFIXES, POOL_LABELS, tolerates_gpus, unbacked_request
from flexspot.policies.inventory.views import Autopilot, GpuPool, Inventory, NodeAutoProvisioning, PodSet, Pool
from flexspot.policies.judging import Level, Parameter, Parameters, Rule
from flexspot.policies.pods.placement import pool_matches
from flexspot.policies.pods.scheduling_options import KEEPS_AWAY, SPOT_LABELS, queue_of
from flexspot.policies.pods.scheduling_options import tolerates as tolerated_by
from flexspot.policies.pools import pools_for
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, all_of, any_of, negated

_DEVICES = (*GPU_PREFIXES, "amd.com/gpu")


@Rule(
    code="FLX069",
    severity=Severity.HIGH,
    why="The API server refuses the pod, and a Job or a Deployment with such pods creates none.",
    remediation="Request a whole GPU; or share one by time-slicing or MPS, where each pod requests 1; or request a slice of one (MIG).",
    link="https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/",
    sources=("https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#consuming-extended-resources",),
)
def fractional_gpu(pods: PodSet, _: Parameters) -> Outcome:
    """A container that requests a fraction of a GPU.

    Devices are whole: a quantity such as 0.5 or 500m is refused, in requests and in limits.
    """
    undetermined = asks = False
    for name, container in pods.containers:
        for field in ("requests", "limits"):
            listed = container.at("resources", field).parts()
            undetermined |= not listed.complete
            for device, amount in listed.named:
                if not device.startswith(_DEVICES):
                    continue
                number, asks = amount.number(), True
                if number is UNKNOWN:
                    undetermined = True
                elif number is not None and number % 1:
                    at = f'{pods.where}: {field}["{device}"] of {name}'
                    return fails(f"{at} is {amount.text()}, but Kubernetes allocates whole devices only", at=f"{pods.where}.containers")
    if undetermined:
        return undecided(f"{pods.where}: its device requests are not known yet")
    return PASSES if asks else NOT_APPLICABLE


@Rule(
    code="FLX047",
    severity=Severity.HIGH,
    why="Devices cannot be overcommitted: the API server refuses such a pod, and a Job's controller keeps trying to create it.",
    remediation=f'Give resources.limits["{GPU_RESOURCE}"] only; Kubernetes takes the request from it.',
    link="https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/#using-device-plugins",
    sources=("k8s.io/kubernetes 1.36.1, pkg/apis/core/validation: resources that cannot be overcommitted.",),
    parameters=(
        Parameter(
            "devices",
            ("nvidia.com/", "amd.com/gpu", "google.com/tpu", "aws.amazon.com/neuron", "habana.ai/", "vpc.amazonaws.com/efa"),
            "Prefixes of resource names that are devices.",
        ),
    ),
)
def gpu_request_differs_from_limit(pods: PodSet, parameters: Parameters) -> Outcome:
    """A container whose GPU request differs from its GPU limit.

    Applies only if both are set. gpu-container-without-limit judges a request alone; a limit alone is also the request.
    """
    devices = parameters.texts("devices")
    undetermined = both = False
    for name, container in pods.containers:
        requests, limits = container.at("resources", "requests"), container.at("resources", "limits")
        undetermined |= not (requests.known and limits.known)
        for device in (key for key, _ in requests.parts().named if key.startswith(devices)):
            wanted, limit = requests.at(device).number(), limits.at(device)
            if limit.absent or not limits.known:
                continue
            given = limit.number()
            if wanted is UNKNOWN or given is UNKNOWN:
                undetermined = True
            elif wanted != given:
                return fails(
                    f"{pods.where}: {name} requests {wanted} {device} but has a limit of {given}, which Kubernetes refuses",
                    f'set both to the same number, or set only resources.limits["{device}"]',
                    pods.where,
                )
            both = True
    if undetermined:
        return undecided(f"{pods.where}: a request or a limit is not known yet")
    return PASSES if both else NOT_APPLICABLE


UNBACKED = "{where}: {container} requests {resource} without a limit, which Kubernetes refuses"


IDLE = f"{{where}} runs on GPU nodes (by {{by}}), and none of its containers has a limit on {' or '.join(RESOURCES)}"


IDLE_REMEDY = f'set resources.limits["{GPU_RESOURCE}"], or that of its nodes, in the container that computes, or take the pod off GPU nodes'


@Rule(
    code="FLX003",
    severity=Severity.HIGH,
    why="A pod on a GPU node that does not request a GPU keeps the node alive, and no quota and no chargeback counts it.",
    remediation=f'Set resources.limits["{GPU_RESOURCE}"] in each container that uses GPUs, and the request equal to it or not at all.',
    link="https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/#using-device-plugins",
)
def gpu_container_without_limit(pods: PodSet, _: Parameters) -> Outcome:
    """A pod on GPU nodes in which no container requests a GPU, or a GPU request without a limit.

    Fails only if the pod alone proves it: it requests GPUs without a limit, or it selects GPU nodes without a GPU request.
    """
    if pods.serve_nodes:
        return NOT_APPLICABLE
    unbacked, container, resource = unbacked_request(pods.pod)
    if unbacked is True:
        return fails(UNBACKED.format(where=pods.where, container=container, resource=resource))
    asks = pods.requests_gpus
    placed, by = pods.placed_on_gpus
    idle = all_of([placed, negated(asks)])
    if idle is True:
        return fails(IDLE.format(where=pods.where, by=by), IDLE_REMEDY)
    if unbacked is UNKNOWN or idle is UNKNOWN:
        return undecided(f"{pods.where}: where it runs, or the GPU requests of its containers, are not known yet")
    return PASSES if asks is True else NOT_APPLICABLE


MOST, SHIPPED = "most-gpus", 16


ABOVE = "{where}: {container} has a limit of {count} on {resource}, and no node that it may have has more than {most}"


ABOVE_REMEDY = "write {most} or less, and split what needs more over several pods"


@Rule(
    code="FLX064",
    severity=Severity.MEDIUM,
    why="Kueue counts its GPUs against the quota and admits it, but no node will ever have room: it holds quota that others could use.",
    remediation="Ask for no more GPUs than the largest node has; a job gets more by having several pods.",
    link="https://kueue.sigs.k8s.io/docs/concepts/workload/#pod-sets",
    sources=("https://docs.cloud.google.com/compute/docs/gpus", "https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html"),
    parameters=(
        Parameter(
            MOST,
            SHIPPED,
            "The most GPUs for one container, regardless of node size: those of the largest machine of either cloud.",
        ),
    ),
)
def gpu_container_above_maximum(pods: PodSet, parameters: Parameters, inventory: Inventory) -> Outcome:
    """A container that requests more GPUs than a node has.

    A container runs on a single node, so the largest node is the limit, as the API server applies it.

    If the input does not show the nodes, the limit is the parameter, which is at least that of every machine of either cloud. A single GPU
    always fits.
    """
    if pods.not_gpu_work:
        return NOT_APPLICABLE
    placed = inventory.closed or any(each.suits is True for each in pool_matches(pods, inventory))
    bounds = {resource: _bound(resource, parameters, inventory, placed=placed) for resource in RESOURCES}
    counts = [
        (name, resource, container.at("resources", "limits", resource).number())
        for resource in RESOURCES
        for name, container in pods.containers
    ]
    for name, resource, count in counts:
        most, _ = bounds[resource]
        if count is not UNKNOWN and count is not None and count > most:
            message = ABOVE.format(where=pods.where, container=name, count=count, resource=resource, most=most)
            return fails(message, ABOVE_REMEDY.format(most=most), f"{pods.where}.containers")
    if pods.requests_gpus is UNKNOWN or any(count is UNKNOWN for _, _, count in counts):
        return undecided(f"{pods.where}: the GPU requests of its containers are not known yet")
    if any(not bounds[resource][1] and isinstance(count, Decimal) and count > 1 for _, resource, count in counts):
        return undecided(f"{pods.where}: the number of GPUs of the largest node is not known")
    return PASSES


def _bound(resource: str, parameters: Parameters, inventory: Inventory, *, placed: bool) -> tuple[Decimal, bool]:
    """Return the most of a resource that a node has, and whether that number is known from the nodes.

    Pods that are not `placed` match none of the listed pools, so other pools must exist. A parameter that is set overrides the nodes, as it
    does in the cluster.
    """
    most = Decimal(parameters.number(MOST))
    if parameters.is_set(MOST):
        return most, True
    known = inventory.once("largest GPU node", resource, lambda: _largest(inventory, resource)) if placed else UNKNOWN
    return (most, False) if known is UNKNOWN else (min(most, known), True)


def _largest(inventory: Inventory, resource: str) -> Decimal | Unknown:
    """Return the most of a resource on a node of any pool. If a cloud creates pools by itself, return that of the largest machine.

    UNKNOWN if no pool is in the input, or if the size of a pool's nodes is not known.
    """
    if inventory.of(NodeAutoProvisioning) or inventory.of(Autopilot) or inventory.of(ComputeClassView):
        return Decimal(SHIPPED)
    counts = [pool.node_gpus for pool in inventory.of(GpuPool) if resource in pool.resources]
    if not counts or not all(isinstance(each, Decimal) for each in counts):
        return UNKNOWN
    return max(each for each in counts if isinstance(each, Decimal))


@Rule(
    code="FLX039",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    why="Work that needs no GPU fills GPU nodes and keeps them alive, and no quota counts it. A pod whose own selector proves it is "
    "gpu-container-without-limit's.",
    remediation=f'Take the toleration or the selector away, or set resources.limits["{RESOURCES[0]}"], or that of the nodes, in the '
    "container that computes.",
    link="https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#example-use-cases",
    sources=("https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#extendedresourcetoleration",),
)
def gpu_node_without_gpu_request(pods: PodSet, _: Parameters, inventory: Inventory) -> Outcome:
    """A pod that targets GPU nodes, by a toleration or by a selector of their pool, but requests no GPU.

    gpu-container-without-limit judges what the pod's own fields prove. This rule uses taints and pools.
    """
    # gpu-container-without-limit judges pods whose own fields select GPU nodes.
    if pods.serve_nodes or pods.placed_on_gpus[0] is True:
        return NOT_APPLICABLE
    asks = pods.requests_gpus
    if asks is True:
        return PASSES
    tolerates = pods.pod.at("tolerations").parts().any(tolerates_gpus)
    if tolerates is False and any(pool.concerned is True for pool in inventory.of(GpuPool)):
        # A toleration of every taint is no sign of GPU nodes, but it allows the pods onto those in the input.
        tolerates = pods.pod.at("tolerations").parts().any(_tolerates_all)
    selector = pods.pod.at("nodeSelector").parts()
    required = pods.pod.at("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    if selector.complete and not selector.named and required.absent:
        goes = tolerates if queue_of(pods, inventory).absent else False
        return _targets_gpus(goes, asks, f"{pods.where}.tolerations lets it onto GPU nodes", f"{pods.where}.tolerations")
    wanted = dict(selector.named)
    known = selector.complete and required.absent
    fitting = [
        (pool, all_of([pool.concerned, pool.offer.carries(wanted), known or UNKNOWN])) for pool in pools_for(GpuPool, wanted, inventory)
    ]
    fits = any_of(answer for _, answer in fitting) if tolerates is False or inventory.can_judge_missing(GpuPool) else UNKNOWN
    pools = ", ".join(sorted(pool.identity.described for pool, answer in fitting if answer is True))
    problem = f"{pods.where}.nodeSelector sends it to GPU nodes of {pools}"
    leads = _selects_only_gpus(pods, wanted, [pool for pool, answer in fitting if answer is not False], inventory)
    return _targets_gpus(all_of([fits, any_of([tolerates, leads])]), asks, problem, f"{pods.where}.nodeSelector")


def _selects_only_gpus(pods: PodSet, wanted: dict[str, Field], pools: list[GpuPool], inventory: Inventory) -> Tri:
    """Return whether the selector selects only GPU nodes: by a label of their pools, or because the input has no other nodes.

    A label that any node may have, such as its zone, does not count while the pools' taints reject the pods or other nodes may exist.
    """
    if _may_match_others(wanted, inventory):
        return False
    if any(key in POOL_LABELS or not key.startswith((*pool.offer.open_prefixes, *SPOT_LABELS)) for key in wanted for pool in pools):
        return True
    kept_off = all_of([True, *(_rejects(pods, pool, inventory) for pool in pools)])
    return all_of([negated(kept_off), inventory.closed or UNKNOWN])


def _rejects(pods: PodSet, pool: GpuPool, inventory: Inventory) -> Tri:
    """Return whether a taint of the pool rejects pods without GPUs, which get no toleration of the GPU taint. GKE may add that taint.

    GKE adds it only to pools created when the cluster has nodes without GPUs. If a complete input has no such nodes, no pool gets it.
    """
    listed = pods.pod.at("tolerations").parts()

    def away(taint: Field) -> Tri:
        tolerated = listed.any(lambda each: tolerated_by(each, taint))
        return all_of([taint.at("effect").equals(*KEEPS_AWAY), negated(tolerated)])

    by_cloud = pool.tainted_by and not (inventory.closed and _all_have_gpus(inventory))
    more = [pool.tainted_by_cloud or UNKNOWN] if by_cloud else ([] if pool.taints.complete else [UNKNOWN])
    return any_of([*map(away, pool.taints.fields), *more])


def _all_have_gpus(inventory: Inventory) -> bool:
    """Return whether every pool in the input certainly has GPUs."""
    return all(isinstance(pool, GpuPool) and pool.concerned is True for pool in inventory.of(Pool))


def _tolerates_all(toleration: Field) -> Tri:
    """Return whether a toleration has no key, so that it tolerates every taint."""
    return all_of(
        [
            toleration.at("key").absent if toleration.at("key").known else UNKNOWN,
            toleration.at("operator").equals("Exists"),
            negated(toleration.at("effect").equals("PreferNoSchedule")),
        ]
    )


def _targets_gpus(goes: Tri, asks: Tri, problem: str, at: str) -> Outcome:
    if goes is False:
        return NOT_APPLICABLE
    if UNKNOWN in (goes, asks):
        return undecided(f"{at.rpartition('.')[0]}: whether it requests GPUs, or goes to GPU nodes, is not known yet")
    return fails(f"{problem}, but none of its containers has a limit on {' or '.join(RESOURCES)}", at=at)


def _may_match_others(wanted: dict[str, Field], inventory: Inventory) -> bool:
    """Return whether nodes without GPUs may match the selector, including nodes that GKE creates."""
    made = inventory.of(NodeAutoProvisioning) or inventory.of(Autopilot) or COMPUTE_CLASS_LABEL in wanted
    plain = (pool for pool in pools_for(Pool, wanted, inventory) if not isinstance(pool, GpuPool))
    return bool(made) or any(pool.offer.carries(wanted) is not False for pool in plain)


_CONTROLLER = "notebook-controller"
"""Part of the name of the workload that runs Kubeflow's Notebooks. It culls idle ones if it is configured to."""


def is_interactive(pods: PodSet, words: tuple[str, ...]) -> bool:
    """Return whether the kind, the name, an image or a command of the pods contains one of `words`."""
    texts = [pods.kind, pods.identity.name]
    for _, container in pods.containers:
        fields = (container.at("image"), *container.at("command").parts().fields, *container.at("args").parts().fields)
        texts += [str(each.text()) for each in fields]
    return any(word in text.lower() for text in texts for word in words)


def limits_itself(pods: PodSet, limits: tuple[str, ...]) -> Tri:
    """Return whether an argument, a variable's name, an annotation or a label contains one of `limits`, or the pod has a deadline."""
    if not pods.pod.at("activeDeadlineSeconds").absent:
        return True
    if any(_contains_any(text, limits) for text in _texts(pods)):
        return True
    open_ended = [*pods.annotations, pods.labels, pods.template_labels, *(each.at("args") for _, each in pods.containers)]
    return False if all(each.known for each in open_ended) else UNKNOWN


def is_ended_by_others(pods: PodSet, limits: tuple[str, ...], inventory: Inventory) -> Tri:
    """Return whether something else ends the work: a Notebook's controller, a scaler of a Deployment that goes to zero, or a culler of
    Pods.

    UNKNOWN if the input has nothing of the kind, because it may be installed elsewhere.
    """
    if inventory.once("culler", limits, lambda: any(_culls(each, limits) for each in inventory.views)) and pods.kind in {"Notebook", "Pod"}:
        return True
    scaled = inventory.once("scaled to zero", None, lambda: _scaled(inventory))
    if scaled.get((pods.identity.namespace, pods.identity.name)):
        return True
    controllers = inventory.once(
        "notebook controllers", None, lambda: [each for each in inventory.of(PodSet) if _CONTROLLER in each.identity.name]
    )
    tells = controllers if pods.kind == "Notebook" else scaled
    return False if tells or inventory.closed else UNKNOWN


def _scaled(inventory: Inventory) -> Mapping[tuple[str, object], bool]:
    """Return whether KEDA scales a workload to zero, by namespace and name. Zero is its default minimum."""
    scalers = [each for each in inventory.of(KubernetesObject) if each.identity.kind in {"ScaledObject", "HTTPScaledObject"}]
    return {
        (each.identity.namespace, each.spec.at("scaleTargetRef", "name").text()): (each.spec.at("minReplicaCount").number() or 0) == 0
        for each in scalers
        if each.spec.at("minReplicaCount").known
    }


def _culls(view: object, limits: tuple[str, ...]) -> bool:
    if isinstance(view, PodSet):
        return "culler" in view.identity.name or any(_contains_any(name, limits) for name in _variables(view))
    if isinstance(view, KubernetesObject) and view.identity.kind == "ConfigMap":
        return any(_contains_any(key, limits) for key, _ in view.fields.at("data").parts().named)
    return False


def _texts(pods: PodSet) -> Iterator[str]:
    for mapping in (*pods.annotations, pods.labels, pods.template_labels):
        yield from (key for key, _ in mapping.parts().named)
    for _, container in pods.containers:
        yield from (str(each.text()) for field in ("command", "args") for each in container.at(field).parts().fields)
    yield from _variables(pods)


def _variables(pods: PodSet) -> Iterator[str]:
    for _, container in pods.containers:
        yield from (str(each.at("name").text()) for each in container.at("env").parts().fields)


def _contains_any(text: str, limits: tuple[str, ...]) -> bool:
    plain = re.sub(r"[-_]", "", text.lower())
    return any(re.sub(r"[-_]", "", limit.lower()) in plain for limit in limits)


@Rule(
    code="FLX053",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    why="A forgotten notebook keeps its GPU and its node for nights and weekends; no queue takes it back by itself.",
    remediation="Cull it when idle (the notebook controller's or JupyterHub's culler, a scaler to zero), or give it a time limit.",
    link="https://jupyterhub.readthedocs.io/en/stable/howto/idle-culler.html",
    sources=("https://www.kubeflow.org/docs/components/notebooks/",),
    parameters=(
        Parameter("kinds", ("Deployment", "Notebook", "Pod", "ReplicaSet", "StatefulSet"), "Kinds of work that do not end by themselves."),
        Parameter("words", ("notebook", "jupyter", "code-server", "rstudio", "vscode"), "Words by which such work is recognized."),
        Parameter(
            "limits",
            (
                *("cull-idle", "culling", "idle-timeout", "shutdown-no-activity-timeout", "idle-culler", "timeout-idle"),
                *("downscaler/", "kueue.x-k8s.io/max-exec-time-seconds"),
            ),
            "Words in arguments, names of variables, annotations and labels that are an idle limit or a time limit; - and _ are ignored.",
        ),
    ),
)
def interactive_gpu_without_idle_limit(pods: PodSet, parameters: Parameters, inventory: Inventory) -> Outcome:
    """A notebook or an editor on a GPU that is not stopped when it is idle.

    Passes with its own limit. A culler or scaler may be installed elsewhere, so without one in the input the verdict may be undecided.
    """
    if pods.not_gpu_work or pods.kind not in parameters.texts("kinds") or not is_interactive(pods, parameters.texts("words")):
        return NOT_APPLICABLE
    limits = parameters.texts("limits")
    limited, ended = limits_itself(pods, limits), is_ended_by_others(pods, limits, inventory)
    if True in (limited, ended):
        return PASSES
    if UNKNOWN in (pods.requests_gpus, limited):
        return undecided(f"{pods.where}: whether it requests GPUs, or has an idle limit, is not known yet")
    if ended is UNKNOWN:
        return undecided(f"{pods.where} has no idle limit of its own, and what may stop it when idle is not in the input")
    return fails(f"{pods.where} is interactive and has GPUs, but neither an idle limit nor a culler stops it", at=pods.where)
