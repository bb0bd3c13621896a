"""Readiness and deletion of objects by kind, and waiting for them, as `pulumi up` does.

The kinds and their rules are the real provider's (provider/pkg/await). An object of any other kind is ready when it exists, also a custom
resource. The real provider waits for those only if the annotation `pulumi.com/waitFor` names a condition.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flexspot.lab.cluster import condition
from flexspot.lab.providers.api import CancelledError
from flexspot.lab.providers.objects import (
    SKIP_AWAIT,
    TIMEOUT_SECONDS,
    WAIT_FOR,
    annotation,
    described,
    is_true,
    metadata,
    name_of,
    namespace_of,
)
from flexspot.lab.providers.values import is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from flexspot.lab.cluster import KubeObject
    from flexspot.lab.providers.api import LabApi


@dataclass(frozen=True)
class Standing:
    """Readiness of an object: ready if nothing is missing (None), not yet, or failed for good.

    `missing` has the official provider's messages where they were observed, which may be none at all (an empty tuple), else own messages.
    `settles_after` is the time in seconds after which the official provider stops waiting and accepts the object as it is.
    """

    missing: tuple[str, ...] | None = None
    failed: bool = False
    settles_after: float | None = None

    @property
    def ready(self) -> bool:
        """True if nothing is missing."""
        return self.missing is None


READY = Standing()
UNREADY = Standing(())


@dataclass(frozen=True)
class ReadinessRule:
    """Check of a kind, and the official provider's default time limit."""

    look: Callable[[KubeObject, LabApi], Standing]
    timeout_seconds: float = 600
    is_requested: bool = False
    """True if the object's own annotation requests the check."""

    applies_to_read: bool = False
    """True if a refresh checks it, too."""


class WaitForError(Exception):
    """The annotation pulumi.com/waitFor has an invalid value."""


def rule_for(live: KubeObject) -> ReadinessRule | None:
    """Return the rule of an object, or None if it is ready as soon as it exists. Raises WaitForError."""
    if wish := annotation(live, WAIT_FOR):
        return _annotated(wish)
    return _RULES.get(f"{live.get('apiVersion')}/{live.get('kind')}")


def _annotated(wish: str) -> ReadinessRule:
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

    return ReadinessRule(look, is_requested=True)


def _wish(wish: str) -> Callable[[KubeObject], Standing]:
    form, _, rest = wish.partition("=")
    name, _, wanted = rest.partition("=")
    if form == "condition" and name:
        status = wanted or "True"

        def has_condition(live: KubeObject) -> Standing:
            return READY if (_condition(live, name).get("status") == status) else UNREADY

        return has_condition
    if form == "jsonpath" and name.startswith("{.") and name.endswith("}") and "[" not in name:
        keys = name[2:-1].split(".")

        def has_value(live: KubeObject) -> Standing:
            value: Any = live
            for key in keys:
                value = value.get(key) if is_object(value) else None
            met = value is not None and (not wanted or str(value) == wanted)
            return READY if met else UNREADY

        return has_value
    raise WaitForError(
        f"{WAIT_FOR}: {wish!r} is not one of `condition=NAME`, `condition=NAME=STATUS`, `jsonpath={{.a.b}}`, `jsonpath={{.a.b}}=VALUE`, "
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


def _pods(live: KubeObject, api: LabApi) -> tuple[str, ...]:
    """Return messages of a workload's pods that are not ready."""
    labels = _object(_object(_spec(live).get("selector")).get("matchLabels"))
    if not labels:
        return ()
    pods = api.find("v1", "Pod", namespace_of(live), ",".join(f"{key}={value}" for key, value in labels.items()))
    return tuple(f"[Pod {namespace_of(pod)}/{name_of(pod)}]: {said}" for pod in pods for said in _pod(pod, api).missing or ())[:3]


def _pod(live: KubeObject, _api: LabApi) -> Standing:
    if condition(live, "Ready") or _status(live).get("phase") == "Succeeded":
        return READY
    scheduled = _condition(live, "PodScheduled")
    if scheduled.get("status") == "False":
        return Standing((f"waiting for the pod to be scheduled ({scheduled.get('reason')}: {scheduled.get('message')})",))
    return Standing((f"waiting for the pod to be ready (phase {_status(live).get('phase', 'unknown')})",))


def _deployment(live: KubeObject, _api: LabApi) -> Standing:
    wanted: int = _spec(live).get("replicas", 1)
    updated: int = _status(live).get("updatedReplicas", 0)
    available: int = _status(live).get("availableReplicas", 0)
    total: int = _status(live).get("replicas", 0)
    if _observed(live) and updated >= wanted and available >= wanted and total <= updated:
        return READY
    troubles = [found for name in ("Progressing", "Available") if (found := _condition(live, name)).get("status") == "False"]
    said = [f"[{each['reason']}] {each['message']}" for each in troubles]
    if not condition(live, "Available"):
        return Standing((*said, "Minimum number of live Pods was not attained"))
    return Standing((*said, "Attempted to roll forward to new ReplicaSet, but minimum number of Pods did not become live"))


def _stateful_set(live: KubeObject, api: LabApi) -> Standing:
    wanted: int = _spec(live).get("replicas", 1)
    ready: int = _status(live).get("readyReplicas", 0)
    current = _status(live).get("currentRevision") == _status(live).get("updateRevision")
    if _observed(live) and ready >= wanted and current:
        return READY
    counted = f"{ready} of {wanted} replicas are ready{'' if current else ' and an update is under way'}"
    return Standing((counted, *_pods(live, api)))


def _daemon_set(live: KubeObject, api: LabApi) -> Standing:
    wanted: int = _status(live).get("desiredNumberScheduled", 0)
    updated: int = _status(live).get("updatedNumberScheduled", 0)
    available: int = _status(live).get("numberAvailable", 0)
    if _observed(live) and updated >= wanted and available >= wanted:
        return READY
    return Standing((f"of {wanted} pods, one per node, {updated} are updated and {available} available", *_pods(live, api)))


def _job(live: KubeObject, _api: LabApi) -> Standing:
    if condition(live, "Complete"):
        return READY
    if failed := condition(live, "Failed"):
        return Standing((f"[{failed.get('reason')}] {failed.get('message')}",), failed=True)
    if _spec(live).get("suspend"):
        return Standing(("the Job is suspended; a queued Job should have the annotation pulumi.com/skipAwait",))
    return UNREADY


_NO_PODS = "Service does not target any Pods. Selected Pods may not be ready, or field '.spec.selector' may not match labels on any Pods"
_NO_ADDRESS = "Service was not allocated an IP address; does your cloud provider support this?"

_SETTLED_SECONDS = 10.0
"""Seconds that the official provider waits for more endpoints of a Service. Then it accepts them, even empty ones."""


def _service(live: KubeObject, api: LabApi) -> Standing:
    kind = _spec(live).get("type", "ClusterIP")
    if kind == "LoadBalancer" and not _object(_status(live).get("loadBalancer")).get("ingress"):
        return Standing((_NO_ADDRESS,))
    if kind == "ExternalName" or _spec(live).get("clusterIP") == "None":
        return READY
    slices = api.find("discovery.k8s.io/v1", "EndpointSlice", namespace_of(live), f"kubernetes.io/service-name={name_of(live)}")
    if any(each.get("endpoints") for each in slices):
        return READY
    return Standing((_NO_PODS,), settles_after=_SETTLED_SECONDS if slices else None)


def _ingress(live: KubeObject, _api: LabApi) -> Standing:
    return READY if _object(_status(live).get("loadBalancer")).get("ingress") else Standing(("no address in .status.loadBalancer",))


def _volume(live: KubeObject, _api: LabApi) -> Standing:
    phase = _status(live).get("phase")
    return READY if phase in {"Available", "Bound"} else Standing((f"the volume is {phase}, neither available nor bound",))


def _claim(live: KubeObject, api: LabApi) -> Standing:
    name = _spec(live).get("storageClassName")
    storage_class = api.get("storage.k8s.io/v1", "StorageClass", "", name) if name else None
    phase = _status(live).get("phase")
    wanted = "Pending" if storage_class and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer" else "Bound"
    return READY if phase in {wanted, "Bound"} else Standing((f"the claim is {phase}, not {wanted}; storage class {name}",))


def _quota(live: KubeObject, _api: LabApi) -> Standing:
    seen = _spec(live).get("hard", {}) == _status(live).get("hard")
    return READY if seen else Standing(("the quota controller has not seen the quota yet",))


def _secret(live: KubeObject, _api: LabApi) -> Standing:
    token = live.get("type") == "kubernetes.io/service-account-token"
    return Standing(("the service account's token is not there yet",)) if token and not live.get("data") else READY


_RULES = {
    "apps/v1/DaemonSet": ReadinessRule(_daemon_set, applies_to_read=True),
    "apps/v1/Deployment": ReadinessRule(_deployment, applies_to_read=True),
    "apps/v1/StatefulSet": ReadinessRule(_stateful_set, applies_to_read=True),
    "batch/v1/Job": ReadinessRule(_job, applies_to_read=True),
    "networking.k8s.io/v1/Ingress": ReadinessRule(_ingress, applies_to_read=True),
    "v1/PersistentVolume": ReadinessRule(_volume, 300),
    "v1/PersistentVolumeClaim": ReadinessRule(_claim, 300),
    "v1/Pod": ReadinessRule(_pod, applies_to_read=True),
    "v1/ResourceQuota": ReadinessRule(_quota, 60),
    "v1/Secret": ReadinessRule(_secret, 5),
    "v1/Service": ReadinessRule(_service, applies_to_read=True),
}


_DELETION_SECONDS = {"apps/v1/Deployment": 600.0, "apps/v1/StatefulSet": 600.0}
_DEFAULT_DELETION_SECONDS = 300.0

_DELETED_WITHOUT_WAIT = {
    "apps/v1/DaemonSet",
    "apps/v1/Deployment",
    "apps/v1/StatefulSet",
    "batch/v1/Job",
    "v1/Namespace",
    "v1/Pod",
}
"""The only kinds for which pulumi.com/skipAwait also disables waiting for the deletion."""

_OVER = "timed out waiting for the condition"
"""The official provider's message when the time for a deletion, or for pulumi.com/waitFor, is over."""


class NotReadyError(Exception):
    """The object exists but is not ready, or is not gone. `live` is its last observed state, `details` are the missing conditions."""

    def __init__(self, text: str, live: KubeObject, details: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.live = live
        self.details = details


def timeout_of(custom_timeout: float, inputs: KubeObject) -> float | None:
    """Return the time limit that the program sets: its option `custom_timeouts`, else the annotation, else None."""
    if custom_timeout:
        return custom_timeout
    text = annotation(inputs, TIMEOUT_SECONDS)
    return float(text) if text.isdecimal() else None


def wait_until_ready(api: LabApi, live: KubeObject, inputs: KubeObject, timeout: float | None) -> KubeObject:
    """Return the object once it is ready.

    Raises NotReadyError when it fails, disappears, or is not ready in time, and when cancelled.
    """
    rule = None if is_true(inputs, SKIP_AWAIT) else rule_for(live)
    if rule is None:
        return live
    seconds = timeout or rule.timeout_seconds
    standing = rule.look(live, api)
    try:
        for waited in _ticks(api, seconds):
            if standing.ready or standing.failed or (standing.settles_after is not None and waited > standing.settles_after):
                break
            found = api.get(live["apiVersion"], live["kind"], namespace_of(live), name_of(live))
            if found is None:
                raise _unready(live, Standing((f"{described(live)} was deleted while it was waited for",)))
            live = found
            standing = rule.look(live, api)
    except CancelledError:
        text = _OVER if rule.is_requested else f'Resource operation was cancelled for "{name_of(live)}"'
        raise NotReadyError(text, live, standing.missing or ()) from None
    if standing.ready or standing.settles_after is not None:
        return live
    if standing.failed:
        raise _unready(live, standing)
    if rule.is_requested:
        raise NotReadyError(_OVER, live)
    raise NotReadyError(f"'{name_of(live)}' timed out waiting to be Ready", live, standing.missing or ())


def require_ready(api: LabApi, live: KubeObject, inputs: KubeObject) -> None:
    """Raise NotReadyError if a refresh checks this kind, and the object is neither ready nor about to become ready by itself."""
    rule = None if is_true(inputs, SKIP_AWAIT) else rule_for(live)
    if rule and rule.applies_to_read and not (standing := rule.look(live, api)).ready and standing.settles_after is None:
        raise _unready(live, standing)


def _unready(live: KubeObject, standing: Standing) -> NotReadyError:
    return NotReadyError(f"Resource '{name_of(live)}' was created but failed to initialize", live, standing.missing or ())


def wait_until_gone(api: LabApi, live: KubeObject, inputs: KubeObject, timeout: float | None) -> None:
    """Return when the object is gone. Raises NotReadyError when it is not gone in time, and when cancelled."""
    kind = f"{live['apiVersion']}/{live['kind']}"
    if is_true(inputs, SKIP_AWAIT) and kind in _DELETED_WITHOUT_WAIT:
        return
    uid = metadata(live).get("uid")
    try:
        for _ in _ticks(api, timeout or _DELETION_SECONDS.get(kind, _DEFAULT_DELETION_SECONDS)):
            found = api.get(live["apiVersion"], live["kind"], namespace_of(live), name_of(live))
            # Another uid is another object: a controller created it again under the same name.
            if found is None or metadata(found).get("uid") != uid:
                return
            live = found
    except CancelledError:
        pass
    raise NotReadyError(_OVER, live)


def _ticks(api: LabApi, seconds: float) -> Iterator[float]:
    """Yield the times at which to check again: at once, then with growing pauses, until the time is over. Raises CancelledError."""
    started = time.monotonic()
    pause = 0.05
    while (waited := time.monotonic() - started) < seconds:
        yield waited
        api.pause(min(pause, max(0.0, started + seconds - time.monotonic())))
        pause = min(pause * 1.5, 1.0)
