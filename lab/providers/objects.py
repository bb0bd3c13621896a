"""Reading and naming Kubernetes objects the way the Kubernetes provider does."""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Any

from pulumi.runtime.proto import provider_pb2

from lab.providers.values import UNKNOWN, is_list, is_object

if TYPE_CHECKING:
    from lab.cluster import KubeObject


AUTONAMED = "pulumi.com/autonamed"
DEFAULT_NAMESPACE = "default"
DELETION_PROPAGATION = "pulumi.com/deletionPropagationPolicy"
PATCH_FIELD_MANAGER = "pulumi.com/patchFieldManager"
PATCH_FORCE = "pulumi.com/patchForce"
REPLACE_UNREADY = "pulumi.com/replaceUnready"
SKIP_AWAIT = "pulumi.com/skipAwait"
TIMEOUT_SECONDS = "pulumi.com/timeoutSeconds"
WAIT_FOR = "pulumi.com/waitFor"

_MANAGED_BY = {"app.kubernetes.io/managed-by": "pulumi"}
"""A label that client-side apply gives to what it makes."""

_READ_ONLY = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
)


def type_of(urn: str) -> str:
    """The resource type in a URN, such as `kubernetes:apps/v1:Deployment`."""
    return urn.split("::")[2].rpartition("$")[2]


def resource_name(urn: str) -> str:
    """The name that the program gave a resource."""
    return urn.split("::", 3)[3]


def kind_of(urn: str, properties: KubeObject) -> tuple[str, str]:
    """The apiVersion and kind: those of the properties, else those of the type, in which the group `core` stands for none."""
    _, api_version, kind = type_of(urn).split(":")
    given_version, given_kind = properties.get("apiVersion"), properties.get("kind")
    if isinstance(given_version, str) and isinstance(given_kind, str):
        api_version, kind = given_version, given_kind
    return api_version.removeprefix("core/"), kind


def metadata(each: KubeObject) -> dict[str, Any]:
    """The object's metadata, empty when there is none or it is not known yet."""
    found = each.get("metadata")
    return found if is_object(found) else {}


def name_of(each: KubeObject) -> str:
    """The object's name, "" when it has none or it is not known yet."""
    found = metadata(each).get("name")
    return found if isinstance(found, str) else ""


def namespace_of(each: KubeObject) -> str:
    """The object's namespace, "" when it has none or it is not known yet."""
    found = metadata(each).get("namespace")
    return found if isinstance(found, str) else ""


def annotation(each: KubeObject, name: str) -> str:
    """An annotation's value, "" when it is not there."""
    found = metadata(each).get("annotations")
    value = found.get(name) if is_object(found) else None
    return value if isinstance(value, str) else ""


def is_true(each: KubeObject, name: str) -> bool:
    """Whether an annotation says `true`."""
    return annotation(each, name) == "true"


def is_named(each: KubeObject) -> bool:
    """Whether the object has a name, or one that is not known yet."""
    return bool(name_of(each)) or metadata(each).get("name") is UNKNOWN


def object_id(each: KubeObject) -> str:
    """What Pulumi knows the object by: `namespace/name`, or `name` for what is in no namespace."""
    return "/".join(part for part in (namespace_of(each), name_of(each)) if part)


def split_id(identity: str) -> tuple[str, str]:
    """The namespace ("" for none) and the name in an ID."""
    namespace, _, name = identity.rpartition("/")
    return namespace, name


def with_managed_by(each: KubeObject, old: KubeObject) -> KubeObject:
    """`each` with the label of client-side apply if the object had it before, as what was made so keeps it."""
    had = metadata(old).get("labels")
    if not is_object(had) or not _MANAGED_BY.items() <= had.items():
        return each
    labels = metadata(each).get("labels")
    return {**each, "metadata": {**metadata(each), "labels": {**(labels if is_object(labels) else {}), **_MANAGED_BY}}}


def described(each: KubeObject) -> str:
    """The object as a message names it, such as `apps/v1/Deployment team-a/web`."""
    return f"{each.get('apiVersion', '')}/{each.get('kind', '')} {object_id(each)}".strip()


def without_read_only(each: KubeObject) -> KubeObject:
    """The object without the metadata that only the API server writes."""
    if not is_object(each.get("metadata")):
        return each
    return {**each, "metadata": {key: value for key, value in metadata(each).items() if key not in _READ_ONLY}}


def pruned(live: Any, shape: Any) -> Any:
    """What of `live` is also in `shape`: the fields that a program set, with the values that they have now.

    Lists are matched by position and cut to the length in `shape`, as the real provider does: an element that somebody else
    appended to a list is no drift.
    """
    if is_object(live) and is_object(shape):
        return {key: pruned(value, shape[key]) for key, value in live.items() if key in shape}
    if is_list(live) and is_list(shape):
        return [pruned(value, wanted) for value, wanted in zip(live, shape, strict=False)]
    return live


_RANDOM_CHARACTERS = 8
_AUTONAMING: Any = provider_pb2.CheckRequest.AutonamingOptions


class NoNameError(Exception):
    """The object has no name and must not be given one."""


def unique_name(prefix: str, seed: bytes) -> str:
    """`prefix` and eight hexadecimal characters: the same ones for the same seed, any for an empty one."""
    if not seed:
        return prefix + secrets.token_hex(_RANDOM_CHARACTERS // 2)
    return prefix + hashlib.sha256(seed + prefix.encode()).hexdigest()[:_RANDOM_CHARACTERS]


def autonamed(each: KubeObject, logical_name: str, seed: bytes, wish: Any = None) -> KubeObject:
    """`each`, named after the resource if it has neither a name nor a generateName, and marked as named by Pulumi.

    `wish` is the engine's AutonamingOptions, from the `pulumi:autonaming` setting of a project. Raises NoNameError when that
    forbids names of this kind.
    """
    if is_named(each) or metadata(each).get("generateName") or each.get("metadata") not in (None, metadata(each)):
        return each
    name = unique_name(f"{logical_name}-", seed)
    if wish is not None:
        if wish.mode == _AUTONAMING.DISABLE:
            raise NoNameError("autonaming is switched off for this resource, so metadata.name must be set")
        name = wish.proposed_name or name
    return _named(each, name)


def with_old_autoname(each: KubeObject, old: KubeObject) -> KubeObject:
    """`each` with the name that Pulumi gave it before, if it did and the program still gives none."""
    if not is_named(each) and not metadata(each).get("generateName") and is_true(old, AUTONAMED):
        return _named(each, name_of(old))
    return each


def _named(each: KubeObject, name: str) -> KubeObject:
    annotations = metadata(each).get("annotations")
    marked: dict[str, Any] = {**(annotations if is_object(annotations) else {}), AUTONAMED: "true"}
    return {**each, "metadata": {**metadata(each), "name": name, "annotations": marked}}
