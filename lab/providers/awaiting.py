"""Waiting until an object is ready, or gone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lab.providers.api import CancelledError
from lab.providers.objects import SKIP_AWAIT, TIMEOUT_SECONDS, annotation, described, is_true, metadata, name_of, namespace_of
from lab.providers.readiness import rule_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import KubeObject
    from lab.providers.api import LabApi

_DELETION_SECONDS = {"apps/v1/Deployment": 600.0, "apps/v1/StatefulSet": 600.0, "v1/ReplicationController": 600.0}
_DEFAULT_DELETION_SECONDS = 300.0

_DELETED_WITHOUT_WAIT = {
    "apps/v1/DaemonSet",
    "apps/v1/Deployment",
    "apps/v1/StatefulSet",
    "batch/v1/Job",
    "v1/Namespace",
    "v1/Pod",
    "v1/ReplicationController",
}
"""The only kinds for which pulumi.com/skipAwait also means not to wait for the deletion."""


class NotReadyError(Exception):
    """The object is there but not ready, or not gone; `live` is how it was seen last."""

    def __init__(self, problem: str, live: KubeObject) -> None:
        super().__init__(problem)
        self.live = live


def timeout_of(custom_timeout: float, inputs: KubeObject) -> float | None:
    """How long the program says to wait: its option `custom_timeouts`, else the annotation, else None."""
    if custom_timeout:
        return custom_timeout
    text = annotation(inputs, TIMEOUT_SECONDS)
    return float(text) if text.isdecimal() else None


def wait_until_ready(api: LabApi, live: KubeObject, inputs: KubeObject, timeout: float | None) -> KubeObject:
    """The object once it is ready. Raises NotReadyError when it fails, goes, or is not ready in time, and when cancelled."""
    rule = None if is_true(inputs, SKIP_AWAIT) else rule_for(live)
    if rule is None:
        return live
    seconds = timeout or rule.timeout_seconds
    standing = rule.look(live, api)
    for _ in _ticks(api, live, seconds):
        if standing.ready or standing.failed:
            break
        found = api.get(live["apiVersion"], live["kind"], namespace_of(live), name_of(live))
        if found is None:
            raise NotReadyError(f"{described(live)} was deleted while it was waited for", live)
        live = found
        standing = rule.look(live, api)
    if standing.ready:
        return live
    if standing.failed:
        raise NotReadyError(f"waited for {standing.waiting_for}", live)
    raise NotReadyError(f"timed out after {seconds:g} s waiting for {standing.waiting_for}", live)


def require_ready(api: LabApi, live: KubeObject, inputs: KubeObject) -> None:
    """Raises NotReadyError if the object is not ready at this moment."""
    rule = None if is_true(inputs, SKIP_AWAIT) else rule_for(live)
    if rule and not (standing := rule.look(live, api)).ready:
        raise NotReadyError(f"not ready, waiting for {standing.waiting_for}", live)


def wait_until_gone(api: LabApi, live: KubeObject, inputs: KubeObject, timeout: float | None) -> None:
    """Returns when the object is gone. Raises NotReadyError, naming the finalizers that may hold it, when it is not in time."""
    kind = f"{live['apiVersion']}/{live['kind']}"
    if is_true(inputs, SKIP_AWAIT) and kind in _DELETED_WITHOUT_WAIT:
        return
    uid = metadata(live).get("uid")
    seconds = timeout or _DELETION_SECONDS.get(kind, _DEFAULT_DELETION_SECONDS)
    for _ in _ticks(api, live, seconds):
        found = api.get(live["apiVersion"], live["kind"], namespace_of(live), name_of(live))
        # Another uid is another object: a controller made it anew under the same name.
        if found is None or metadata(found).get("uid") != uid:
            return
        live = found
    held: list[str] = [*metadata(live).get("finalizers", []), *(live.get("spec", {}).get("finalizers") or [])]
    why = f"; finalizers may be holding it: {', '.join(held)}" if held else ""
    raise NotReadyError(f"timed out after {seconds:g} s waiting for the deletion of {described(live)}{why}", live)


def _ticks(api: LabApi, live: KubeObject, seconds: float) -> Iterator[None]:
    """The moments at which to look again: at once, then ever more rarely, until the time is over."""
    deadline = time.monotonic() + seconds
    pause = 0.05
    while time.monotonic() < deadline:
        yield
        try:
            api.pause(min(pause, max(0.0, deadline - time.monotonic())))
        except CancelledError:
            raise NotReadyError(f"cancelled while waiting for {described(live)}", live) from None
        pause = min(pause * 1.5, 1.0)
