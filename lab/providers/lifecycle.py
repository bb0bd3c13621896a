"""What the Kubernetes provider does with an object: create, read, update and delete it on the API server."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

from lab.providers.api import Refusal, UnservedKindError
from lab.providers.awaiting import NotReadyError, require_ready, timeout_of, wait_until_gone, wait_until_ready
from lab.providers.failures import FORBIDDEN, INVALID, NOT_FOUND, PartialFailureError, ProviderError, refused
from lab.providers.ignoring import with_ignored
from lab.providers.objects import (
    DELETION_PROPAGATION,
    PATCH_FORCE,
    annotation,
    described,
    is_true,
    kind_of,
    metadata,
    name_of,
    namespace_of,
    object_id,
    pruned,
    split_id,
    with_string_data,
    without_read_only,
)
from lab.providers.readiness import WaitForError
from lab.providers.state import FIELD_MANAGER_PREFIX, field_manager, initial_api_version, live_part, recorded, with_secrets
from lab.providers.values import Properties, has_unknown, hyphenated, plain, underscored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.cluster import KubeObject
    from lab.providers.api import LabApi

_CRD = "CustomResourceDefinition"
_PROPAGATION = {"orphan": "Orphan", "background": "Background"}


def create(api: LabApi, inputs: Properties, *, timeout: float, preview: bool, patience_seconds: float) -> tuple[str, Properties]:
    """The ID and outputs of a new object; in a preview those of a dry run, or the inputs where none is possible.

    An object that is there already is taken over, as server-side apply does.
    """
    wanted: KubeObject = without_read_only(hyphenated(plain(inputs)))
    if preview and (has_unknown(wanted) or not _is_served(api, wanted)):
        return "", inputs
    manager = field_manager({}, wanted) or FIELD_MANAGER_PREFIX + secrets.token_hex(4)
    try:
        live = _created(api, wanted, manager, preview=preview, patience_seconds=patience_seconds)
    except (Refusal, UnservedKindError) as error:
        if preview and isinstance(error, Refusal) and (error.namespace_is_missing or error.status == FORBIDDEN):
            return "", inputs
        raise ProviderError(refused("create", wanted, manager, error)) from error
    if preview:
        live.pop("status", None)
        return "", recorded(live, inputs, wanted["apiVersion"], manager)
    if wanted["kind"] == _CRD:
        api.forget_kinds()
    try:
        live = wait_until_ready(api, live, wanted, timeout_of(timeout, wanted))
    except (NotReadyError, WaitForError) as error:
        live = error.live if isinstance(error, NotReadyError) else live
        reason = f"{described(live)} was created, but did not become ready: {error}"
        raise PartialFailureError(reason, object_id(live), recorded(live, inputs, wanted["apiVersion"], manager)) from error
    return object_id(live), recorded(live, inputs, wanted["apiVersion"], manager)


def _created(api: LabApi, wanted: KubeObject, manager: str, *, preview: bool, patience_seconds: float) -> KubeObject:
    """Applies the object; outside a preview for as long as its kind or namespace may still be coming."""
    deadline = time.monotonic() + patience_seconds
    pause = 0.25
    while True:
        try:
            return _applied(api, wanted, manager, preview=preview)
        except (Refusal, UnservedKindError) as error:
            missing = isinstance(error, UnservedKindError) or error.status == NOT_FOUND
            if preview or not missing or time.monotonic() + pause > deadline:
                raise
        api.pause(pause)
        pause = min(2 * pause, 4.0)


def _applied(api: LabApi, wanted: KubeObject, manager: str, *, preview: bool) -> KubeObject:
    namespace = namespace_of(wanted)
    if not name_of(wanted) and metadata(wanted).get("generateName"):
        return api.create(wanted, namespace, manager, dry_run=preview)
    force = preview or is_true(wanted, PATCH_FORCE)
    try:
        return api.apply(wanted, namespace, manager, force=force, dry_run=preview)
    except Refusal as refusal:
        if not (preview and refusal.status == INVALID and "immutable" in refusal.message):
            raise
    # A replacement is previewed while the old object is still there: under another name the dry run does not meet it.
    other = {**wanted, "metadata": {**metadata(wanted), "name": f"{name_of(wanted)}{secrets.token_hex(3)[:5]}"}}
    return api.apply(other, namespace, manager, force=force, dry_run=preview)


def read(api: LabApi, urn: str, identity: str, state: Properties, old_inputs: Properties) -> tuple[str, Properties, Properties] | None:
    """The ID, outputs and inputs of an object as it is now, None when it is gone.

    Without old inputs (an import, or `get`) the inputs are the whole object, less its status.
    """
    namespace, name = split_id(identity)
    shape: KubeObject = without_read_only(hyphenated(plain(old_inputs)))
    api_version, kind = kind_of(urn, shape if "kind" in shape else live_part(state))
    try:
        live = api.get(api_version, kind, namespace or namespace_of(shape), name)
    except UnservedKindError:
        return None
    if live is None:
        return None
    if old_inputs:
        inputs: KubeObject = pruned(with_string_data(live, shape), shape)
    else:
        inputs = {key: value for key, value in without_read_only(live).items() if key != "status"}
        shape = inputs
    manager = field_manager(state, shape) or FIELD_MANAGER_PREFIX + secrets.token_hex(4)
    outputs = recorded(live, old_inputs, initial_api_version(state, shape) or api_version, manager)
    known = with_secrets(underscored(inputs), old_inputs)
    try:
        if old_inputs:
            require_ready(api, live, shape)
    except (NotReadyError, WaitForError) as error:
        raise PartialFailureError(f"{described(live)}: {error}", identity, outputs, known) from error
    return identity, outputs, known


def update(  # noqa: PLR0913 -- what the engine asks with
    api: LabApi, state: Properties, old_inputs: Properties, news: Properties, *, ignored: Sequence[str], timeout: float, preview: bool
) -> Properties:
    """The outputs of a changed object; in a preview those of a dry run, or the new inputs where none is possible."""
    wanted: KubeObject = without_read_only(hyphenated(plain(news)))
    if preview and (has_unknown(wanted) or not _is_served(api, wanted)):
        return news
    before = live_part(state)
    manager = field_manager(state, wanted) or FIELD_MANAGER_PREFIX + secrets.token_hex(4)
    first_version = initial_api_version(state, hyphenated(plain(old_inputs)))
    now: KubeObject | None = before
    try:
        now = api.get(wanted["apiVersion"], wanted["kind"], namespace_of(before), name_of(before))
        if now is None:
            raise ProviderError(
                f"cannot update {described(before)}: it is gone. `pulumi refresh` makes the state know, then `pulumi up` makes it anew."
            )
        live = _updated(api, wanted, now, manager, ignored, preview=preview)
    except UnservedKindError as error:
        raise ProviderError(refused("update", wanted, manager, error)) from error
    except Refusal as refusal:
        reason = refused("update", wanted, manager, refusal)
        if preview:
            if refusal.status == FORBIDDEN:
                return news
            raise ProviderError(reason) from refusal
        # Nothing was changed, but the engine must come back to it: the real provider reports this as an unready object too.
        raise PartialFailureError(reason, object_id(before), recorded(now or before, news, first_version, manager)) from refusal
    if preview:
        return recorded(live, news, first_version, manager)
    try:
        live = wait_until_ready(api, live, wanted, timeout_of(timeout, wanted))
    except (NotReadyError, WaitForError) as error:
        live = error.live if isinstance(error, NotReadyError) else live
        reason = f"{described(live)} was updated, but did not become ready: {error}"
        raise PartialFailureError(reason, object_id(live), recorded(live, news, first_version, manager)) from error
    _relinquish(api, live, plain(state.get("__fieldManager", manager)), manager)
    return recorded(live, news, first_version, manager)


def _updated(  # noqa: PLR0913 -- what an update is made of
    api: LabApi, wanted: KubeObject, now: KubeObject, manager: str, ignored: Sequence[str], *, preview: bool
) -> KubeObject:
    namespace = namespace_of(now)
    body: KubeObject = {**wanted, "metadata": {**metadata(wanted), "name": name_of(now)}}
    body["metadata"].pop("generateName", None)
    if wanted["kind"] == _CRD:
        # The real provider replaces definitions whole: their objects stay, and a version that is gone is gone.
        body["metadata"]["resourceVersion"] = metadata(now)["resourceVersion"]
        replaced = api.replace(body, namespace, manager, dry_run=preview)
        api.forget_kinds()
        return replaced
    body = with_ignored(body, now, manager, ignored)
    return api.apply(body, namespace, manager, force=is_true(wanted, PATCH_FORCE), dry_run=preview)


def _relinquish(api: LabApi, live: KubeObject, old_manager: str, manager: str) -> None:
    """Gives up what an earlier field manager of the resource owned."""
    if old_manager == manager:
        return
    empty = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": {"name": name_of(live)}}
    api.apply(empty, namespace_of(live), old_manager, force=True, dry_run=False)


def delete(api: LabApi, identity: str, state: Properties, old_inputs: Properties, *, timeout: float) -> None:
    """Deletes an object and waits until it is gone; fine when it, or its kind, is gone already."""
    inputs: KubeObject = hyphenated(plain(old_inputs)) or live_part(state)
    before = live_part(state)
    _, name = split_id(identity)
    try:
        live = api.get(before["apiVersion"], before["kind"], namespace_of(before), name)
        if live is None:
            return
        propagation = _PROPAGATION.get(annotation(inputs, DELETION_PROPAGATION).lower(), "Foreground")
        api.delete(live["apiVersion"], live["kind"], namespace_of(live), name, propagation)
        wait_until_gone(api, live, inputs, timeout_of(timeout, inputs))
    except UnservedKindError:
        return
    except Refusal as refusal:
        raise ProviderError(refused("delete", before, "", refusal)) from refusal
    except NotReadyError as error:
        notes: Any = field_manager(state, inputs)
        raise PartialFailureError(
            str(error), identity, recorded(error.live, old_inputs, initial_api_version(state, inputs), notes)
        ) from error
    if before["kind"] == _CRD:
        api.forget_kinds()


def _is_served(api: LabApi, each: KubeObject) -> bool:
    try:
        api.resource(each["apiVersion"], each["kind"])
    except UnservedKindError:
        return False
    return True
