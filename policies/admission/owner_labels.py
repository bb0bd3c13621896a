"""The labels that say whose work is, filled in from the namespace by the API server, in CEL."""

from __future__ import annotations

from capacity.catalog.node_labels import ENVIRONMENT_LABEL, OWNER_LABEL, TEAM_LABEL
from policies.admission.cel import mapping_at, text, texts
from policies.admission.policy import ResourceRule
from policies.pod_templates import POD_MAKERS

KEYS = (ENVIRONMENT_LABEL, OWNER_LABEL, TEAM_LABEL)
"""The labels that are filled in; the last two are among those that missing-owner-labels asks for."""

_OWN = mapping_at("object", "metadata", "labels")
_OF_NAMESPACE = mapping_at("namespaceObject", "metadata", "labels")
_PATH = f"{text('/metadata/labels/')} + jsonpatch.escapeKey(k)"

PATCHES = (
    "(has(object.metadata.labels) ? [] : [JSONPatch{op: 'add', path: '/metadata/labels', value: {}}])"
    f" + {texts(KEYS)}.filter(k, k in {_OF_NAMESPACE} && !(k in {_OWN}))"
    f".map(k, JSONPatch{{op: 'add', path: {_PATH}, value: namespaceObject.metadata.labels[k]}})"
)
"""CEL for the patches of an object: every label that its namespace has and it has not."""


def labelled() -> tuple[ResourceRule, ...]:
    """Whatever makes pods, when it is made; pods too, so that what is measured of them has an owner."""
    by_group: dict[str, list[str]] = {}
    for maker in POD_MAKERS.values():
        by_group.setdefault(maker.group, []).append(maker.resource)
    return tuple(ResourceRule(group, tuple(resources), ("CREATE",)) for group, resources in by_group.items())
