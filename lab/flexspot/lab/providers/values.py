"""Properties in the Pulumi engine's format, and in Python.

On the wire a property bag is a protobuf Struct. In it an unknown value is one of a few fixed strings, and a secret is an object with a
fixed signature key (pulumi/pulumi, sdk/go/common/resource/plugin/rpc.go). In Python they are UNKNOWN and Secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from google.protobuf import json_format, struct_pb2

from flexspot.capacity.values.engine_marks import OUTPUT, RESOURCE, SECRET, SIGNATURE, UNKNOWN_TEXT, UNKNOWNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Properties = dict[str, Any]
"""JSON whose leaves may also be UNKNOWN, and whose values may be wrapped in Secret."""


class UnknownValue(Enum):
    """A value that exists only once another resource has been created."""

    UNKNOWN = "unknown"


UNKNOWN: Final = UnknownValue.UNKNOWN


@dataclass(frozen=True)
class Secret:
    """A value that the engine encrypts in the state and masks in its output."""

    value: Any


# The SDKs do not allow hyphens in property names, so a CustomResourceDefinition's schema has these two spellings.
_HYPHENATED = {
    name.replace("-", "_"): name
    for name in (
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    )
}
_UNDERSCORED = {hyphenated: underscored for underscored, hyphenated in _HYPHENATED.items()}


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether a JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Return whether a JSON value is a list."""
    return isinstance(value, list)


def decode(struct: Any) -> Properties:
    """Return the properties of a protobuf Struct. Nulls in objects are omitted, as the real provider does."""
    found = _decoded(json_format.MessageToDict(struct))
    return found if is_object(found) else {}


def encode(properties: Properties) -> Any:
    """Return the protobuf Struct of `properties`."""
    struct: Any = struct_pb2.Struct()
    json_format.ParseDict(_encoded(properties), struct)
    return struct


def plain(value: Any) -> Any:
    """Return `value` without the wrapping of secrets; UNKNOWN stays. Shares nothing with `value`, so it may be changed."""
    return plain(value.value) if isinstance(value, Secret) else _each(value, plain)


def without_secrets(value: Any) -> Any:
    """Return `value` with UNKNOWN instead of each secret. Shares nothing with `value`."""
    return UNKNOWN if isinstance(value, Secret) else _each(value, without_secrets)


def has_unknown(value: Any) -> bool:
    """Return whether UNKNOWN is anywhere in `value`."""
    return value is UNKNOWN or any(map(has_unknown, _parts(value)))


def has_secret(value: Any) -> bool:
    """Return whether a Secret is anywhere in `value`."""
    return isinstance(value, Secret) or any(map(has_secret, _parts(value)))


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return `value` with its parts changed."""
    if isinstance(value, Secret):
        return Secret(change(value.value))
    if is_object(value):
        return {key: change(each) for key, each in value.items()}
    return [change(each) for each in value] if is_list(value) else value


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, Secret):
        return (value.value,)
    return value.values() if is_object(value) else value if is_list(value) else ()


def hyphenated(value: Any) -> Any:
    """Return `value` with the keys that Kubernetes spells with hyphens, for the API server."""
    return _renamed(value, _HYPHENATED)


def underscored(value: Any) -> Any:
    """Return `value` with the keys that the SDKs spell with underscores, for the engine."""
    return _renamed(value, _UNDERSCORED)


def _decoded(value: Any) -> Any:
    if is_object(value):
        return _decoded_object(value)
    if isinstance(value, float) and value.is_integer():
        # Protobuf has only doubles; Kubernetes needs 3, not 3.0.
        return int(value)
    if isinstance(value, str) and value in UNKNOWNS:
        return UNKNOWN
    return _each(value, _decoded)


def _decoded_object(value: Properties) -> Any:
    signature = value.get(SIGNATURE)
    if signature == SECRET:
        return Secret(_decoded(value.get("value")))
    if signature == OUTPUT:
        inner = _decoded(value["value"]) if "value" in value else UNKNOWN
        return Secret(inner) if value.get("secret") else inner
    if signature == RESOURCE:
        return _decoded(value.get("id", value.get("urn")))
    return {key: _decoded(each) for key, each in value.items() if each is not None}


def _encoded(value: Any) -> Any:
    if isinstance(value, Secret):
        return {SIGNATURE: SECRET, "value": _encoded(value.value)}
    if is_object(value):
        return {key: _encoded(each) for key, each in value.items() if each is not None}
    return UNKNOWN_TEXT if value is UNKNOWN else _each(value, _encoded)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    named = {names.get(key, key): each for key, each in value.items()} if is_object(value) else value
    return _each(named, lambda each: _renamed(each, names))
