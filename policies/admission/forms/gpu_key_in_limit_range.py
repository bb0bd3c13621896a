"""The rule gpu-key-in-limit-range in CEL."""

from __future__ import annotations

from policies.admission.cel import either, list_at, optional, places, text
from policies.admission.form import Form, Matched, told
from policies.rules.gpu_key_in_limit_range import DEVICES, GIVES, GPU_KEY, GPU_KEY_REMEDY, REFUSES, RULE, SECTIONS


def _of(section: str) -> str:
    effect = text(GIVES if section.startswith("default") else REFUSES)
    at = f"('spec.limits[' + string(i) + {text(f'].{section}[')} + '\"' + k + '\"]')"
    device = either(*(f"k.startsWith({text(each)})" for each in DEVICES))
    # The first key alone: what follows from one follows from all.
    return (
        f"{places(list_at('object', 'spec', 'limits'))}"
        f".filter(i, {optional('object.spec.limits[i]', section)}.orValue({{}}).exists(k, {device}))"
        f".map(i, object.spec.limits[i].{section}.filter(k, {device}).map(k, {told(GPU_KEY, GPU_KEY_REMEDY, at=at, effect=effect)})[0])"
    )


FORM = Form(RULE, (Matched("", "LimitRange", "limitranges"),), " + ".join(_of(section) for section in SECTIONS))
