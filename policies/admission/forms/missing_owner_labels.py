"""The rule missing-owner-labels in CEL, of work alone: pools are the platform's own."""

from __future__ import annotations

from policies.admission.cel import either, entry, first_of, mapping_at, texts
from policies.admission.form import POD_MAKERS, Form, of_each, told
from policies.admission.variables import GPU_WORK
from policies.rules.missing_owner_labels import OWNERLESS, OWNERLESS_REMEDY, RULE

_KEYS = RULE.defaults().texts("label-keys")


def _names_owner(labels: str) -> str:
    return f"{texts(_KEYS)}.exists(k, {entry(labels, 'k')} != '')"


_OWNED = either(
    _names_owner(mapping_at("object", "metadata", "labels")),
    _names_owner(mapping_at("p.template", "metadata", "labels")),
    _names_owner("variables.queueLabels"),
    _names_owner(mapping_at("namespaceObject", "metadata", "labels")),
)

FORM = Form(RULE, POD_MAKERS, of_each(GPU_WORK, first_of((f"!({_OWNED})", told(OWNERLESS, OWNERLESS_REMEDY.format(key=_KEYS[0]))))))
