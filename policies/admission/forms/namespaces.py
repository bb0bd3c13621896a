"""What holds in a namespace, in CEL: quotas and limit ranges."""

from __future__ import annotations

from policies.admission.cel import either, every, list_at, mapping_at, optional, places, text
from policies.admission.form import Form, Matched, told
from policies.rules.gpu_key_in_limit_range import DEVICES as RANGE_DEVICES
from policies.rules.gpu_key_in_limit_range import GIVES, GPU_KEY, GPU_KEY_REMEDY, REFUSES, SECTIONS
from policies.rules.gpu_key_in_limit_range import RULE as RANGE_RULE
from policies.rules.quota_key_never_enforced import DEVICES as QUOTA_DEVICES
from policies.rules.quota_key_never_enforced import LIMITS, REQUESTS, UNCOUNTED, UNCOUNTED_REMEDY
from policies.rules.quota_key_never_enforced import RULE as QUOTA_RULE

# The rule gpu-key-in-limit-range in CEL.


def _of(section: str) -> str:
    effect = text(GIVES if section.startswith("default") else REFUSES)
    at = f"('spec.limits[' + string(i) + {text(f'].{section}[')} + '\"' + k + '\"]')"
    device = either(*(f"k.startsWith({text(each)})" for each in RANGE_DEVICES))
    # The first key alone: what follows from one follows from all.
    return (
        f"{places(list_at('object', 'spec', 'limits'))}"
        f".filter(i, {optional('object.spec.limits[i]', section)}.orValue({{}}).exists(k, {device}))"
        f".map(i, object.spec.limits[i].{section}.filter(k, {device}).map(k, {told(GPU_KEY, GPU_KEY_REMEDY, at=at, effect=effect)})[0])"
    )


GPU_KEY_IN_LIMIT_RANGE = Form(
    RANGE_RULE, (Matched("", "LimitRange", "limitranges"),), lambda _: " + ".join(_of(section) for section in SECTIONS)
)


# The rule quota-key-never-enforced in CEL.

_RESOURCE = f"(k.startsWith({text(LIMITS)}) ? k.substring({len(LIMITS)}) : k)"
_UNCOUNTED = every(f"!k.startsWith({text(REQUESTS)})", either(*(f"{_RESOURCE}.startsWith({text(each)})" for each in QUOTA_DEVICES)))
_TOLD = told(UNCOUNTED, UNCOUNTED_REMEDY, at="('spec.hard[\"' + k + '\"]')", resource=_RESOURCE)

QUOTA_KEY_NEVER_ENFORCED = Form(
    QUOTA_RULE,
    (Matched("", "ResourceQuota", "resourcequotas"),),
    lambda _: f"{mapping_at('object', 'spec', 'hard')}.filter(k, {_UNCOUNTED}).map(k, {_TOLD})",
)
