"""Requests to an API server with additional definitions: whether it accepts a component's objects."""

from __future__ import annotations

import copy
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flexspot.lab.cluster import wait_until_established

if TYPE_CHECKING:
    from collections.abc import Generator

    from flexspot.lab.cluster import Cluster, KubeObject

DEFINITION = "apiextensions.k8s.io/v1/CustomResourceDefinition"


@contextmanager
def serving(cluster: Cluster, definition: KubeObject) -> Generator[Cluster]:
    """Yield the API server with a definition. It is deleted afterwards with its objects."""
    name: str = definition["metadata"]["name"]
    cluster.apply(definition)
    wait_until_established(cluster, [name])
    yield cluster
    cluster.delete(DEFINITION, name)

    def gone(definitions: list[KubeObject]) -> bool:
        return all(each["metadata"]["name"] != name for each in definitions)

    cluster.wait_for(DEFINITION, gone, f"the deletion of {name}")


def integers(value: Any) -> Any:
    """Convert whole floats to integers: the mocks return every number as a float."""
    if isinstance(value, dict):
        return {key: integers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [integers(each) for each in value]
    return int(value) if isinstance(value, float) else value


def changed(each: KubeObject, where: str, **changes: Any) -> KubeObject:
    """Return a copy with changes at a path such as `blockDeviceMappings.0.ebs` of its spec; None removes a field."""
    copied = copy.deepcopy(each)
    found: Any = copied["spec"]
    for part in filter(None, where.split(".")):
        found = found[int(part)] if part.isdigit() else found[part]
    found.update(changes)
    for key in [key for key, value in changes.items() if value is None]:
        del found[key]
    return copied
