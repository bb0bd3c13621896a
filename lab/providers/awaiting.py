"""Waiting until an object is ready, or gone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lab.providers.api import CancelledError
from lab.providers.objects import SKIP_AWAIT, TIMEOUT_SECONDS, annotation, described, is_true, metadata, name_of, namespace_of
from lab.providers.readiness import Standing, rule_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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

_OVER = "timed out waiting for the condition"
"""What the official provider says of a deletion, and of pulumi.com/waitFor, when the time is over."""


class NotReadyError(Exception):
    """The object is there but not ready, or not gone; `live` is how it was seen last, `details` say what is missing."""

    def __init__(self, text: str, live: KubeObject, details: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.live = live
        self.details = details


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
        text = _OVER if rule.is_asked_for else f'Resource operation was cancelled for "{name_of(live)}"'
        raise NotReadyError(text, live, standing.missing or ()) from None
    if standing.ready or standing.settles_after is not None:
        return live
    if standing.failed:
        raise _unready(live, standing)
    if rule.is_asked_for:
        raise NotReadyError(_OVER, live)
    raise NotReadyError(f"'{name_of(live)}' timed out waiting to be Ready", live, standing.missing or ())


def require_ready(api: LabApi, live: KubeObject, inputs: KubeObject) -> None:
    """Raises NotReadyError if the object is of a kind that a refresh looks at, and is not ready at this moment."""
    rule = None if is_true(inputs, SKIP_AWAIT) else rule_for(live)
    if rule and rule.is_looked_at_by_read and not (standing := rule.look(live, api)).ready and standing.settles_after is None:
        raise _unready(live, standing)


def _unready(live: KubeObject, standing: Standing) -> NotReadyError:
    return NotReadyError(f"Resource '{name_of(live)}' was created but failed to initialize", live, standing.missing or ())


def wait_until_gone(api: LabApi, live: KubeObject, inputs: KubeObject, timeout: float | None) -> None:
    """Returns when the object is gone. Raises NotReadyError when it is not in time, and when cancelled."""
    kind = f"{live['apiVersion']}/{live['kind']}"
    if is_true(inputs, SKIP_AWAIT) and kind in _DELETED_WITHOUT_WAIT:
        return
    uid = metadata(live).get("uid")
    try:
        for _ in _ticks(api, timeout or _DELETION_SECONDS.get(kind, _DEFAULT_DELETION_SECONDS)):
            found = api.get(live["apiVersion"], live["kind"], namespace_of(live), name_of(live))
            # Another uid is another object: a controller made it anew under the same name.
            if found is None or metadata(found).get("uid") != uid:
                return
            live = found
    except CancelledError:
        pass
    raise NotReadyError(_OVER, live)


def _ticks(api: LabApi, seconds: float) -> Iterator[float]:
    """The moments at which to look again: at once, then ever more rarely, until the time is over. Raises CancelledError."""
    started = time.monotonic()
    pause = 0.05
    while (waited := time.monotonic() - started) < seconds:
        yield waited
        api.pause(min(pause, max(0.0, started + seconds - time.monotonic())))
        pause = min(pause * 1.5, 1.0)
