"""What the state keeps of a Kubernetes object, and which of it is secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lab.providers.objects import PATCH_FIELD_MANAGER, annotation
from lab.providers.values import Properties, Secret, has_secret, hyphenated, is_object, plain, underscored

if TYPE_CHECKING:
    from lab.cluster import KubeObject

FIELD_MANAGER = "__fieldManager"
INITIAL_API_VERSION = "__initialApiVersion"
_INPUTS = "__inputs"

FIELD_MANAGER_PREFIX = "pulumi-kubernetes-"


def recorded(live: KubeObject, inputs: Properties, initial_api_version: str, manager: str) -> Properties:
    """The outputs of a resource: the live object, with what is secret in the inputs secret here, and the provider's own two notes."""
    outputs = with_secrets(underscored(live), inputs)
    string_data = inputs.get("stringData")
    data = outputs.get("data")
    if has_secret(string_data) and data is not None and not isinstance(data, Secret):
        outputs["data"] = Secret(data)
    return {**outputs, INITIAL_API_VERSION: initial_api_version, FIELD_MANAGER: manager}


def live_part(state: Properties) -> KubeObject:
    """The object in the outputs of a resource, as it was when they were recorded."""
    return {key: value for key, value in hyphenated(plain(state)).items() if key not in {FIELD_MANAGER, INITIAL_API_VERSION, _INPUTS}}


def field_manager(state: Properties, inputs: KubeObject) -> str:
    """The field manager of a resource: what its annotation says, else the one that it has had since it was made, else ""."""
    return annotation(inputs, PATCH_FIELD_MANAGER) or plain(state.get(FIELD_MANAGER, ""))


def initial_api_version(state: Properties, inputs: KubeObject) -> str:
    """The apiVersion with which the resource was made."""
    return plain(state.get(INITIAL_API_VERSION)) or inputs.get("apiVersion", "")


def with_secrets(outputs: Any, inputs: Any) -> Properties:
    """`outputs` with secret what is secret in `inputs`, and the data of a Secret in any case.

    Where a list of the inputs holds a secret, the whole list is secret: the server may have reordered it.
    """
    found: Properties = dict(outputs)
    if found.get("kind") == "Secret":
        for key in ("data", "stringData"):
            if key in found and not isinstance(found[key], Secret):
                found[key] = Secret(found[key])
        return found
    given: Properties = inputs
    for key, value in given.items():
        if key not in found or isinstance(found[key], Secret):
            continue
        if is_object(found[key]) and is_object(value):
            found[key] = with_secrets(found[key], value)
        elif has_secret(value):
            found[key] = Secret(found[key])
    return found
