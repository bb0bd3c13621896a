"""When an object is ready, by kind: what `pulumi up` waits for.

The kinds and their rules are the real provider's (provider/pkg/await). An object of any other kind is ready when it exists, a
custom resource too: the real provider waits for those only where the annotation `pulumi.com/waitFor` says for what.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.cluster import condition
from lab.providers.objects import WAIT_FOR, annotation, name_of, namespace_of
from lab.providers.values import is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab.cluster import KubeObject
    from lab.providers.api import LabApi


@dataclass(frozen=True)
class Standing:
    """How an object stands: ready, not yet (`waiting_for` says why), or failed for good."""

    waiting_for: str = ""
    failed: bool = False

    @property
    def ready(self) -> bool:
        """Whether nothing is missing."""
        return not self.waiting_for


READY = Standing()


@dataclass(frozen=True)
class Rule:
    """How to look at a kind, and how long the real provider waits for it unless told otherwise."""

    look: Callable[[KubeObject, LabApi], Standing]
    timeout_seconds: float = 600


class WaitForError(Exception):
    """The annotation pulumi.com/waitFor cannot be understood."""


def rule_for(live: KubeObject) -> Rule | None:
    """The rule of an object, None when it is ready as soon as it exists. Raises WaitForError."""
    if wish := annotation(live, WAIT_FOR):
        return _annotated(wish)
    return _RULES.get(f"{live.get('apiVersion')}/{live.get('kind')}")


def _annotated(wish: str) -> Rule:
    try:
        parsed: Any = json.loads(wish)
    except ValueError:
        parsed = wish
    wishes: list[str] = parsed if is_list(parsed) else [wish]
    looks = [_wish(each) for each in wishes]
    if not looks:
        raise WaitForError(f"{WAIT_FOR}: at least one condition must be given")

    def look(live: KubeObject, _api: LabApi) -> Standing:
        return next((standing for one in looks if not (standing := one(live)).ready), READY)

    return Rule(look)


def _wish(wish: str) -> Callable[[KubeObject], Standing]:
    form, _, rest = wish.partition("=")
    name, _, wanted = rest.partition("=")
    if form == "condition" and name:
        status = wanted or "True"

        def has_condition(live: KubeObject) -> Standing:
            return READY if (_condition(live, name).get("status") == status) else Standing(f"condition {name}={status}")

        return has_condition
    if form == "jsonpath" and name.startswith("{.") and name.endswith("}") and "[" not in name:
        keys = name[2:-1].split(".")

        def has_value(live: KubeObject) -> Standing:
            value: Any = live
            for key in keys:
                value = value.get(key) if is_object(value) else None
            met = value is not None and (not wanted or str(value) == wanted)
            return READY if met else Standing(f"{name}{f' to be {wanted}' if wanted else ''} (now {value})")

        return has_value
    raise WaitForError(
        f"{WAIT_FOR}: {wish!r} is none of `condition=NAME`, `condition=NAME=STATUS`, `jsonpath={{.a.b}}`, `jsonpath={{.a.b}}=VALUE`, "
        "or a JSON list of these (the stand-in provider knows no brackets in a path)"
    )


def _status(live: KubeObject) -> dict[str, Any]:
    return _object(live.get("status"))


def _spec(live: KubeObject) -> dict[str, Any]:
    return _object(live.get("spec"))


def _object(value: Any) -> dict[str, Any]:
    return value if is_object(value) else {}


def _condition(live: KubeObject, name: str) -> dict[str, Any]:
    conditions: list[dict[str, Any]] = _status(live).get("conditions") or []
    return next((each for each in conditions if each["type"] == name), _object(None))


def _observed(live: KubeObject) -> bool:
    return _status(live).get("observedGeneration", 0) >= live["metadata"].get("generation", 0)


def _pods(live: KubeObject, api: LabApi) -> str:
    """What the pods of a workload that are not ready say, for the message."""
    labels = _object(_object(_spec(live).get("selector")).get("matchLabels"))
    if not labels:
        return ""
    pods = api.find("v1", "Pod", namespace_of(live), ",".join(f"{key}={value}" for key, value in labels.items()))
    said = [f"{name_of(pod)}: {told}" for pod in pods if (told := _pod(pod, api).waiting_for)]
    return "".join(f"; {each}" for each in said[:3])


def _pod(live: KubeObject, _api: LabApi) -> Standing:
    if condition(live, "Ready") or _status(live).get("phase") == "Succeeded":
        return READY
    scheduled = _condition(live, "PodScheduled")
    if scheduled.get("status") == "False":
        return Standing(f"the pod to be scheduled ({scheduled.get('reason')}: {scheduled.get('message')})")
    return Standing(f"the pod to be ready (phase {_status(live).get('phase', 'unknown')})")


def _deployment(live: KubeObject, api: LabApi) -> Standing:
    wanted: int = _spec(live).get("replicas", 1)
    updated: int = _status(live).get("updatedReplicas", 0)
    available: int = _status(live).get("availableReplicas", 0)
    total: int = _status(live).get("replicas", 0)
    if _observed(live) and updated >= wanted and available >= wanted and total <= updated:
        return READY
    late = _condition(live, "Progressing")
    why = f" ({late['reason']}: {late['message']})" if late.get("status") == "False" else ""
    return Standing(f"{wanted} replicas: {updated} updated, {available} available{why}{_pods(live, api)}")


def _stateful_set(live: KubeObject, api: LabApi) -> Standing:
    wanted: int = _spec(live).get("replicas", 1)
    ready: int = _status(live).get("readyReplicas", 0)
    current = _status(live).get("currentRevision") == _status(live).get("updateRevision")
    if _observed(live) and ready >= wanted and current:
        return READY
    return Standing(f"{wanted} ready replicas, now {ready}{'' if current else ' and an update under way'}{_pods(live, api)}")


def _daemon_set(live: KubeObject, api: LabApi) -> Standing:
    wanted: int = _status(live).get("desiredNumberScheduled", 0)
    updated: int = _status(live).get("updatedNumberScheduled", 0)
    available: int = _status(live).get("numberAvailable", 0)
    if _observed(live) and updated >= wanted and available >= wanted:
        return READY
    return Standing(f"{wanted} pods, one per node: {updated} updated, {available} available{_pods(live, api)}")


def _job(live: KubeObject, api: LabApi) -> Standing:
    if condition(live, "Complete"):
        return READY
    if failed := condition(live, "Failed"):
        return Standing(f"the Job to complete, but it failed ({failed.get('reason')}: {failed.get('message')})", failed=True)
    suspended = " (it is suspended; a queued Job should have the annotation pulumi.com/skipAwait)" if _spec(live).get("suspend") else ""
    return Standing(f"the Job to complete{suspended}{_pods(live, api)}")


def _service(live: KubeObject, api: LabApi) -> Standing:
    kind = _spec(live).get("type", "ClusterIP")
    if kind == "ExternalName" or _spec(live).get("clusterIP") == "None":
        return READY
    slices = api.find("discovery.k8s.io/v1", "EndpointSlice", namespace_of(live), f"kubernetes.io/service-name={name_of(live)}")
    if not any(each.get("endpoints") for each in slices):
        return Standing("pods that the Service targets: none is there yet, or .spec.selector matches the labels of none")
    if kind == "LoadBalancer" and not _object(_status(live).get("loadBalancer")).get("ingress"):
        return Standing("an address for the load balancer")
    return READY


def _ingress(live: KubeObject, _api: LabApi) -> Standing:
    return READY if _object(_status(live).get("loadBalancer")).get("ingress") else Standing("an address in .status.loadBalancer")


def _volume(live: KubeObject, _api: LabApi) -> Standing:
    phase = _status(live).get("phase")
    return READY if phase in {"Available", "Bound"} else Standing(f"the volume to be available or bound (now {phase})")


def _claim(live: KubeObject, api: LabApi) -> Standing:
    name = _spec(live).get("storageClassName")
    storage_class = api.get("storage.k8s.io/v1", "StorageClass", "", name) if name else None
    phase = _status(live).get("phase")
    wanted = "Pending" if storage_class and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer" else "Bound"
    return READY if phase in {wanted, "Bound"} else Standing(f"the claim to be {wanted} (now {phase}; storage class {name})")


def _quota(live: KubeObject, _api: LabApi) -> Standing:
    return READY if _spec(live).get("hard", {}) == _status(live).get("hard") else Standing("the quota controller to have seen the quota")


def _secret(live: KubeObject, _api: LabApi) -> Standing:
    token = live.get("type") == "kubernetes.io/service-account-token"
    return Standing("the service account's token") if token and not live.get("data") else READY


def _replication_controller(live: KubeObject, api: LabApi) -> Standing:
    wanted, available = _spec(live).get("replicas", 1), _status(live).get("availableReplicas", 0)
    return READY if wanted == available else Standing(f"{wanted} replicas, {available} available{_pods(live, api)}")


_RULES = {
    "apps/v1/DaemonSet": Rule(_daemon_set),
    "apps/v1/Deployment": Rule(_deployment),
    "apps/v1/StatefulSet": Rule(_stateful_set),
    "batch/v1/Job": Rule(_job),
    "networking.k8s.io/v1/Ingress": Rule(_ingress),
    "v1/PersistentVolume": Rule(_volume, 300),
    "v1/PersistentVolumeClaim": Rule(_claim, 300),
    "v1/Pod": Rule(_pod),
    "v1/ReplicationController": Rule(_replication_controller),
    "v1/ResourceQuota": Rule(_quota, 60),
    "v1/Secret": Rule(_secret, 5),
    "v1/Service": Rule(_service),
}
