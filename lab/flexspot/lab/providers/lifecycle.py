"""Create, read, update and delete an object on the API server as the Kubernetes provider does, with the managers of its fields."""

from __future__ import annotations

import secrets
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flexspot.lab.providers.api import ApiRefusal, UnservedKindError
from flexspot.lab.providers.objects import (
    DELETION_PROPAGATION,
    PATCH_FORCE,
    annotation,
    input_fields,
    is_true,
    kind_of,
    metadata,
    name_of,
    namespace_of,
    normalized,
    object_id,
    pruned,
    split_id,
    type_of,
    without_read_only,
)
from flexspot.lab.providers.planning import (
    FIELD_MANAGER,
    SHARED_FIELD_MANAGER,
    field_manager,
    initial_api_version,
    inputs_in,
    live_part,
    recorded,
    with_secrets,
)
from flexspot.lab.providers.readiness import NotReadyError, WaitForError, require_ready, timeout_of, wait_until_gone, wait_until_ready
from flexspot.lab.providers.serving import PartialFailureError, ProviderError
from flexspot.lab.providers.values import Properties, has_unknown, hyphenated, is_object, plain, underscored

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexspot.lab.cluster import KubeObject
    from flexspot.lab.providers.api import LabApi
    from flexspot.lab.providers.planning import ProviderSettings


_APPLY = "Apply"
_UPDATE = "Update"

_FORMER_MANAGERS = (
    ("kubectl", _APPLY),
    ("kubectl", _UPDATE),
    ("before-first-apply", _UPDATE),
    (SHARED_FIELD_MANAGER, _UPDATE),
    ("pulumi-resource-kubernetes", _UPDATE),
)
"""Prefixes of the managers' names that hand over their fields, and for which operation."""

Entry = dict[str, Any]
"""An entry of `metadata.managedFields`."""


def handed_over(live: KubeObject, manager: str) -> list[Entry] | None:
    """Return the managed fields with those of the former managers assigned to `manager`, or None if they have none."""
    entries: list[Entry] = live["metadata"].get("managedFields", [])
    giving = [each for each in entries if _gives_up(each)]
    own = next((each for each in entries if (each["manager"], each["operation"]) == (manager, _APPLY)), None)
    given = [each for each in giving if each is not own]
    if not given:
        return None
    kept = [each for each in entries if each is not own and not any(each is gone for gone in given)]
    first, *others = [own, *given] if own else given
    fields: Any = first.get("fieldsV1", {})
    for each in others:
        fields = _united(fields, each.get("fieldsV1", {}))
    return [*kept, {**first, "manager": manager, "operation": _APPLY, "fieldsV1": fields}]


def was_created_by_provider(live: KubeObject) -> bool:
    """Return whether fields are still as the provider's Create set them, so that a dry run of an update would conflict with them."""
    names = {SHARED_FIELD_MANAGER, f"{SHARED_FIELD_MANAGER}.exe", "pulumi-resource-kubernetes"}
    return any(each["operation"] == _UPDATE and each["manager"] in names for each in live["metadata"].get("managedFields", []))


def _gives_up(entry: Entry) -> bool:
    return not entry.get("subresource") and any(
        entry["manager"].startswith(name) and entry["operation"] == operation for name, operation in _FORMER_MANAGERS
    )


def _united(one: Any, other: Any, *, is_root: bool = True) -> Any:
    """Return the fields of two managers. A field without children is owned. One with children is owned, too, if it has the child `.`."""
    if not is_object(one) or not is_object(other):
        return one
    united: dict[str, Any] = {
        key: _united(one[key], other[key], is_root=False) if key in one and key in other else one.get(key, other.get(key))
        for key in [*one, *(key for key in other if key not in one)]
    }
    if not is_root and united and (not one or not other):
        united = {".": {}, **united}
    return united


def with_ignored(wanted: KubeObject, live: KubeObject, manager: str, ignored: Iterable[str]) -> KubeObject:
    """Return the object to apply so that the ignored fields stay as they are.

    A field that other managers own and this resource does not is omitted, so that there is no conflict. Any other ignored field is sent
    with its live value, because a field that is no longer sent would be removed. As in the real provider, a path leads only through
    objects: one with a list's position has no effect.
    """
    result = deepcopy(wanted)
    for written in ignored:
        path = written.split(".")
        if "[" in written or _at(result, path) is None:
            continue
        managers = {entry["manager"] for entry in live["metadata"].get("managedFields", []) if _owns(entry.get("fieldsV1", {}), path)}
        parent = _at(result, path[:-1])
        if managers and manager not in managers:
            parent.pop(path[-1])
        elif (value := _at(live, path)) is not None:
            parent[path[-1]] = deepcopy(value)
    return result


def _at(each: Any, path: list[str]) -> Any:
    for key in path:
        each = each.get(key) if is_object(each) else None
    return each


def _owns(fields: Any, path: list[str]) -> bool:
    return _at(fields, [f"f:{key}" for key in path]) is not None


_CRD = "CustomResourceDefinition"
_PROPAGATION = {"orphan": "Orphan", "background": "Background"}
_ALREADY_EXISTS = "AlreadyExists"
_FORBIDDEN = "Forbidden"
_INVALID = "Invalid"
_RETRIES = 5
"""Number of retries of a Create whose kind or namespace is missing, with pauses that double each time."""


@dataclass(frozen=True)
class CallContext:
    """The API server, the provider's settings, and the seconds to wait for a missing kind or namespace."""

    api: LabApi
    settings: ProviderSettings
    patience_seconds: float


def create(call: CallContext, urn: str, inputs: Properties, *, timeout: float, preview: bool) -> tuple[str, Properties]:
    """Return the ID and outputs of a new object. In a preview, those of a dry run, or the inputs if none is possible.

    An object that exists already is an error, unless the provider is set to upsert. A preview does not report this error.
    """
    wanted: KubeObject = hyphenated(plain(inputs))
    if preview and (has_unknown(wanted) or not _is_served(call.api, wanted)):
        return "", inputs
    manager = field_manager({}, wanted)
    try:
        live = _create_with_retries(call, wanted, manager, preview=preview)
    except (ApiRefusal, UnservedKindError) as error:
        # A webhook's refusal is Forbidden, too, so a preview ignores it.
        if preview and isinstance(error, ApiRefusal) and (error.is_missing_namespace or error.reason in {_ALREADY_EXISTS, _FORBIDDEN}):
            return "", inputs
        raise ProviderError(_not_created(urn, manager, error)) from error
    if preview:
        live.pop("status", None)
        return "", recorded(live, wanted, inputs, wanted["apiVersion"], manager)
    if wanted["kind"] == _CRD:
        call.api.forget_kinds()
    try:
        live = wait_until_ready(call.api, live, wanted, timeout_of(timeout, wanted))
    except (NotReadyError, WaitForError) as error:
        live, details = (error.live, error.details) if isinstance(error, NotReadyError) else (live, ())
        state = recorded(_latest(call.api, live), wanted, inputs, wanted["apiVersion"], manager)
        raise PartialFailureError(_not_ready_after_creation(urn, str(error)), object_id(live), state, details=details) from error
    return object_id(live), recorded(_latest(call.api, live), wanted, inputs, wanted["apiVersion"], manager)


def _create_with_retries(call: CallContext, wanted: KubeObject, manager: str, *, preview: bool) -> KubeObject:
    """Create the object. Outside a preview, retry while its kind or namespace may still appear."""
    pause = call.patience_seconds / (2 ** (_RETRIES + 1) - 1)
    for tries_left in reversed(range(_RETRIES + 2)):
        try:
            return _create_once(call, wanted, manager, preview=preview)
        except (ApiRefusal, UnservedKindError) as error:
            if preview or not tries_left or (isinstance(error, ApiRefusal) and not error.is_missing):
                raise
        call.api.pause(pause)
        pause *= 2
    raise AssertionError("the last try answers or raises")


def _create_once(call: CallContext, wanted: KubeObject, manager: str, *, preview: bool) -> KubeObject:
    api, namespace = call.api, namespace_of(wanted)
    if not call.settings.upsert or not name_of(wanted):
        return api.create(wanted, namespace, SHARED_FIELD_MANAGER, dry_run=preview)
    # A preview ignores conflicts, because the object that a replacement deletes first still exists then.
    force = preview or _is_forced(call, wanted)
    try:
        return api.apply(wanted, namespace, manager, force=force, dry_run=preview)
    except ApiRefusal as refusal:
        if not (preview and refusal.reason == _INVALID and "field is immutable" in refusal.message):
            raise
    # A replacement is previewed while the old object still exists: under another name the dry run does not conflict with it.
    other = {**wanted, "metadata": {**metadata(wanted), "name": f"{name_of(wanted)}{secrets.token_hex(3)[:5]}"}}
    return api.apply(other, namespace, manager, force=force, dry_run=preview)


def _is_forced(call: CallContext, wanted: KubeObject) -> bool:
    return call.settings.patch_force or is_true(wanted, PATCH_FORCE)


def read(
    call: CallContext, urn: str, identity: str, state: Properties, old_inputs: Properties
) -> tuple[str, Properties, Properties] | None:
    """Return the current ID, outputs and inputs of an object, or None if it does not exist.

    The inputs are the fields of the old ones, with their current values. Without old inputs (an import) they are all fields that a program
    may set in a built-in kind, and only the name for a custom resource.
    """
    shape: KubeObject = normalized(call.api, hyphenated(plain(old_inputs)))
    before = live_part(state)
    is_import = "kind" not in shape and "kind" not in before
    if "kind" not in shape:
        namespace, name = split_id(identity)
        shape["metadata"] = {**({"namespace": namespace} if namespace else {}), "name": name, **metadata(shape)}
        shape["apiVersion"], shape["kind"] = kind_of(urn, before)
    api_version, kind = kind_of(urn, shape)
    _, name = split_id(identity)
    try:
        live = call.api.get(api_version, kind, namespace_of(shape), name)
    except UnservedKindError:
        return None
    if live is None:
        return None
    inputs: KubeObject = pruned(live, shape)
    if is_import:
        fields = input_fields(call.api, api_version, kind)
        inputs = without_read_only({**inputs, **{key: live[key] for key in fields if key in live}})
    manager = field_manager(state, shape)
    outputs = recorded(live, inputs, old_inputs, initial_api_version(state, shape), manager)
    known = with_secrets(underscored(inputs), old_inputs)
    try:
        if not is_import:
            require_ready(call.api, live, shape)
    except NotReadyError as error:
        raise PartialFailureError(str(error), identity, outputs, known, details=error.details) from error
    except WaitForError:
        # Reported when the object was created.
        pass
    return identity, outputs, known


def update(  # noqa: PLR0913 -- what the engine asks with
    call: CallContext,
    urn: str,
    state: Properties,
    old_inputs: Properties,
    news: Properties,
    *,
    ignored: Sequence[str],
    timeout: float,
    preview: bool,
) -> Properties:
    """Return the outputs of an updated object. In a preview, those of a dry run, or the new inputs if none is possible."""
    api = call.api
    wanted = normalized(api, hyphenated(plain(news)))
    if preview and (has_unknown(wanted) or not _is_served(api, wanted)):
        return news
    before = live_part(state)
    manager = field_manager(state, wanted)
    old_manager: str = plain(state.get(FIELD_MANAGER)) or manager
    first_version = initial_api_version(state, hyphenated(plain(old_inputs)))
    why, details = "", ()
    try:
        live = _updated(call, wanted, before, manager, ignored, preview=preview)
        if preview:
            return recorded(live, wanted, news, first_version, manager)
        wait_until_ready(api, live, wanted, timeout_of(timeout, wanted))
    except UnservedKindError as error:
        raise ProviderError(_no_kind_to_update(urn, error)) from error
    except ApiRefusal as refusal:
        if preview and refusal.reason == _FORBIDDEN:
            return news
        why = _said(refusal, manager)
    except (NotReadyError, WaitForError) as error:
        why, details = str(error), error.details if isinstance(error, NotReadyError) else ()
    try:
        live = api.read(before["apiVersion"], before["kind"], namespace_of(before), name_of(before))
    except ApiRefusal as gone:
        raise ProviderError(_nothing_to_update(urn, why, gone)) from gone
    outputs = recorded(live, wanted, news, first_version, manager)
    if why:
        # The engine must retry after any failure: the state gets the attempted inputs and the current object.
        raise PartialFailureError(_not_updated(live, why), object_id(live), outputs, details=details)
    _relinquish(api, live, old_manager, manager)
    return outputs


def _updated(  # noqa: PLR0913 -- what an update is made of
    call: CallContext, wanted: KubeObject, before: KubeObject, manager: str, ignored: Sequence[str], *, preview: bool
) -> KubeObject:
    api, namespace = call.api, namespace_of(before)
    now = api.read(wanted["apiVersion"], wanted["kind"], namespace, name_of(before))
    body: KubeObject = {**wanted, "metadata": {**metadata(wanted), "name": name_of(now)}}
    body["metadata"].pop("generateName", None)
    if wanted["kind"] == _CRD:
        # The official provider replaces whole definitions: their objects stay, and versions that are no longer listed are removed.
        body["metadata"]["resourceVersion"] = metadata(now)["resourceVersion"]
        replaced = api.replace(body, namespace, manager, dry_run=preview)
        api.forget_kinds()
        return replaced
    force = _is_forced(call, wanted) or (preview and was_created_by_provider(now))
    if not preview and (entries := handed_over(now, manager)) is not None:
        now = api.set_managed_fields(now, entries)
    return api.apply(with_ignored(body, now, manager, ignored), namespace, manager, force=force, dry_run=preview)


def _relinquish(api: LabApi, live: KubeObject, old_manager: str, manager: str) -> None:
    """Give up the fields of an earlier field manager of the resource."""
    if old_manager == manager:
        return
    empty = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": {"name": name_of(live)}}
    api.apply(empty, namespace_of(live), old_manager, force=True, dry_run=False)


def delete(call: CallContext, identity: str, state: Properties, old_inputs: Properties, *, timeout: float) -> None:
    """Delete an object and wait until it is gone. No error if it, or its kind, does not exist."""
    inputs = inputs_in(state, old_inputs) or live_part(state)
    before = live_part(state)
    _, name = split_id(identity)
    try:
        live = call.api.get(before["apiVersion"], before["kind"], namespace_of(before), name)
        if live is None:
            return
        propagation = _PROPAGATION.get(annotation(inputs, DELETION_PROPAGATION).lower(), "Foreground")
        call.api.delete(live["apiVersion"], live["kind"], namespace_of(live), name, propagation)
        wait_until_gone(call.api, live, inputs, timeout_of(timeout, inputs))
    except UnservedKindError:
        return
    except ApiRefusal as refusal:
        raise ProviderError(refusal.message) from refusal
    except NotReadyError as error:
        # The object still exists and is in the state: nothing to record.
        raise ProviderError(str(error)) from error
    if before["kind"] == _CRD:
        call.api.forget_kinds()


def _latest(api: LabApi, live: KubeObject) -> KubeObject:
    """Return the current object, with what controllers have added, or `live` if it is gone."""
    return api.get(live["apiVersion"], live["kind"], namespace_of(live), name_of(live)) or live


def _is_served(api: LabApi, each: KubeObject) -> bool:
    try:
        api.resource(each["apiVersion"], each["kind"])
    except UnservedKindError:
        return False
    return True


_CONFLICT = "Conflict"

_IT_EXISTS = """

The resource already exists in the cluster. This can happen when:

  - Renaming a Pulumi resource: use an alias to preserve the identity,
    or use deleteBeforeReplace if the resource needs replacement.
  - Managing an existing resource: use a Patch resource (e.g. NamespacePatch)
    to manage specific fields without owning the resource lifecycle.
  - Adopting a resource into Pulumi: use `pulumi import`. Note that
    protected resources (e.g. kube-system) cannot be deleted on destroy.
  - Intentional upsert: set upsertExistingObjects on the provider to allow
    server-side apply to update existing objects on create."""

_CONFLICTS = (
    "https://www.pulumi.com/registry/packages/kubernetes/how-to-guides/managing-resources-with-server-side-apply/"
    "#handle-field-conflicts-on-existing-resources"
)


def _not_created(urn: str, manager: str, cause: ApiRefusal | UnservedKindError) -> str:
    """Return the error that a creation failed, with a remedy."""
    if isinstance(cause, UnservedKindError):
        _, api_version, kind = type_of(urn).split(":")
        served = f"{api_version.removeprefix('core/')}/{kind}"
        return f'creation of resource "{urn}" with kind {served} failed because {_NO_KIND}: {cause}'
    advice = _IT_EXISTS if cause.reason == _ALREADY_EXISTS else ""
    return f'resource "{urn}" was not successfully created by the Kubernetes API server: {_said(cause, manager)}{advice}'


def _not_ready_after_creation(urn: str, why: str) -> str:
    """Return the error that a new object is not ready."""
    return (
        f'resource "{urn}" was successfully created, but the Kubernetes API server reported that it failed to fully initialize '
        f"or become live: {why}"
    )


def _not_updated(live: KubeObject, why: str) -> str:
    """Return the error that an object could not be updated, or is not ready after it."""
    return f'the Kubernetes API server reported that "{object_id(live)}" failed to fully initialize or become live: {why}'


def _nothing_to_update(urn: str, why: str, cause: ApiRefusal) -> str:
    """Return the error that an update failed, and the object cannot be read either."""
    return f'update of resource "{urn}" failed: {why}\nunable to get cluster state: {cause.message}'


def _no_kind_to_update(urn: str, cause: UnservedKindError) -> str:
    """Return the error that an update failed because its kind is not served."""
    return f'update of resource "{urn}" failed because {_NO_KIND}: {cause}'


_NO_KIND = (
    "the Kubernetes API server reported that the apiVersion for this resource does not exist. "
    "Verify that any required CRDs have been created"
)


def _said(cause: ApiRefusal, manager: str) -> str:
    """Return the API server's message. For a conflict, add the field manager and a link to help."""
    if cause.reason != _CONFLICT:
        return cause.message
    return (
        f"server-side apply field conflict detected, see {_CONFLICTS} for troubleshooting help\n"
        f'The resource managed by field manager "{manager}" had an apply conflict: {cause.message}'
    )
