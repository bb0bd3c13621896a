"""The rule quota-key-never-enforced in CEL."""

from __future__ import annotations

from policies.admission.cel import either, every, mapping_at, text
from policies.admission.form import Form, Matched, told
from policies.rules.quota_key_never_enforced import DEVICES, LIMITS, REQUESTS, RULE, UNCOUNTED, UNCOUNTED_REMEDY

_RESOURCE = f"(k.startsWith({text(LIMITS)}) ? k.substring({len(LIMITS)}) : k)"
_UNCOUNTED = every(f"!k.startsWith({text(REQUESTS)})", either(*(f"{_RESOURCE}.startsWith({text(each)})" for each in DEVICES)))
_TOLD = told(UNCOUNTED, UNCOUNTED_REMEDY, at="('spec.hard[\"' + k + '\"]')", resource=_RESOURCE)

FORM = Form(
    RULE,
    (Matched("", "ResourceQuota", "resourcequotas"),),
    f"{mapping_at('object', 'spec', 'hard')}.filter(k, {_UNCOUNTED}).map(k, {_TOLD})",
)
