"""The names of objects whose program gave them none."""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Any

from pulumi.runtime.proto import provider_pb2

from lab.providers.objects import AUTONAMED, is_named, is_true, metadata, name_of
from lab.providers.values import is_object

if TYPE_CHECKING:
    from lab.cluster import KubeObject

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
