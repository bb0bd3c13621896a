"""What the state keeps of a Kubernetes object, and which of it is secret.

As the official provider keeps it, so that each reads what the other wrote: the live object, and beside its fields the inputs after
Check (`__inputs`), the apiVersion with which it was made, and the field manager that is its own for life.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from lab.providers.objects import PATCH_FIELD_MANAGER, annotation
from lab.providers.values import Properties, Secret, has_secret, hyphenated, is_object, plain, underscored

if TYPE_CHECKING:
    from lab.cluster import KubeObject

FIELD_MANAGER = "__fieldManager"
INITIAL_API_VERSION = "__initialApiVersion"
INPUTS = "__inputs"

SHARED_FIELD_MANAGER = "pulumi-kubernetes"
"""The manager of a Create, and of all that was made with client-side apply."""


def recorded(live: KubeObject, inputs: KubeObject, given: Properties, initial_api_version: str, manager: str) -> Properties:
    """The outputs of a resource. What is secret in the inputs that the engine gave is secret here."""
    outputs = with_secrets(underscored(live), given)
    string_data = given.get("stringData")
    data = outputs.get("data")
    if has_secret(string_data) and data is not None and not isinstance(data, Secret):
        outputs["data"] = Secret(data)
    own = {INPUTS: with_secrets(underscored(inputs), given), INITIAL_API_VERSION: initial_api_version, FIELD_MANAGER: manager}
    return {**outputs, **own}


def live_part(state: Properties) -> KubeObject:
    """The object in the outputs of a resource, as it was when they were recorded."""
    return {key: value for key, value in hyphenated(plain(state)).items() if key not in {FIELD_MANAGER, INITIAL_API_VERSION, INPUTS}}


def inputs_in(state: Properties, old_inputs: Properties) -> KubeObject:
    """The inputs that are in force: the engine's.

    The state's own differ where an update failed: they are what was tried. An engine that sends none has only them.
    """
    found: KubeObject = hyphenated(plain(old_inputs)) or hyphenated(plain(state.get(INPUTS))) or {}
    return found


def field_manager(state: Properties, inputs: KubeObject) -> str:
    """The field manager of a resource: what its annotation says, else the one that it has had since it was made, else a new one."""
    known: str = annotation(inputs, PATCH_FIELD_MANAGER) or plain(state.get(FIELD_MANAGER, ""))
    return known or f"{SHARED_FIELD_MANAGER}-{secrets.token_hex(4)}"


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
