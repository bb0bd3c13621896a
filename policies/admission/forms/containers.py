"""What containers ask for and which images they run, in CEL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.accelerators import RESOURCES
from policies.admission.cel import (
    amount,
    as_text,
    either,
    every,
    first_of,
    let,
    list_at,
    mapping_at,
    optional,
    places,
    sentence,
    text,
    text_at,
    texts,
)
from policies.admission.form import GPU_WORK, POD_MAKERS, WORK, Form, Matched, of_each, told
from policies.admission.pods import ASKS, PLACED_BY, containers_where, unbacked
from policies.admission.scheduling_options import MOST_GPUS
from policies.rules.gpu_container_above_maximum import ABOVE, ABOVE_REMEDY, MOST
from policies.rules.gpu_container_above_maximum import RULE as MAXIMUM_RULE
from policies.rules.gpu_container_without_limit import IDLE, IDLE_REMEDY
from policies.rules.gpu_container_without_limit import RULE as LIMIT_RULE
from policies.rules.gpu_container_without_limit import UNBACKED as UNBACKED_TEXT
from policies.rules.gpu_key_in_limit_range import DEVICES as RANGE_DEVICES
from policies.rules.gpu_key_in_limit_range import GIVES, GPU_KEY, GPU_KEY_REMEDY, REFUSES, SECTIONS
from policies.rules.gpu_key_in_limit_range import RULE as RANGE_RULE
from policies.rules.image_not_pinned import MOVES, UNPINNED, UNTAGGED
from policies.rules.image_not_pinned import RULE as IMAGE_RULE
from policies.rules.quota_key_never_enforced import DEVICES as QUOTA_DEVICES
from policies.rules.quota_key_never_enforced import LIMITS, REQUESTS, UNCOUNTED, UNCOUNTED_REMEDY
from policies.rules.quota_key_never_enforced import RULE as QUOTA_RULE

if TYPE_CHECKING:
    from policies.judging import Parameters


# The rule gpu-container-without-limit in CEL.

_UNBACKED = " + ".join(
    containers_where(unbacked(each), told(UNBACKED_TEXT, LIMIT_RULE.remediation, where="p.where", container="NAME", resource=text(each)))
    for each in RESOURCES
)
_IDLE = told(IDLE, IDLE_REMEDY, where="p.where", by="by")
_PLACED = let("by", PLACED_BY, first_of((f"by != '' && !({ASKS})", _IDLE)))

GPU_CONTAINER_WITHOUT_LIMIT = Form(
    LIMIT_RULE,
    POD_MAKERS,
    lambda _: of_each(WORK, let("unbacked", f"({_UNBACKED})", first_of(("size(unbacked) > 0", "unbacked[0]"), otherwise=_PLACED))),
)


# The rule gpu-container-above-maximum in CEL: its parameter is what the largest node of the pods' class has.

_OF_CLASS = f"variables.facts[?({text(MOST_GPUS + '.')} + {text_at('p.pod', 'priorityClassName')})]"
_OF_PLATFORM = f"{_OF_CLASS}.or(variables.facts[?{text(MOST_GPUS)}])"


def _above(resource: str) -> str:
    limit = f"{optional('CONTAINER', 'resources', 'limits')}[?{text(resource)}]"
    count = as_text(f"{limit}.value()")
    return containers_where(
        every(f"{limit}.hasValue()", f"isQuantity({count})", f"{amount(count)}.compareTo(quantity(most)) > 0"),
        told(ABOVE, ABOVE_REMEDY, where="p.where", container="NAME", count=count, resource=text(resource), most="most"),
    )


_ABOVE = f"({' + '.join(map(_above, RESOURCES))})"

GPU_CONTAINER_ABOVE_MAXIMUM = Form(
    MAXIMUM_RULE,
    POD_MAKERS,
    lambda parameters: of_each(
        GPU_WORK,
        let(
            "most",
            f"{_OF_PLATFORM}.orValue({text(str(parameters.number(MOST)))})",
            let("above", _ABOVE, first_of(("size(above) > 0", "above[0]"))),
        ),
    ),
)


# The rule image-not-pinned in CEL.

_IMAGE = text_at("CONTAINER", "image")
# A colon before the last slash is that of a registry's port.
_LAST = f"{_IMAGE}.substring({_IMAGE}.lastIndexOf('/') + 1)"
_TAG = f"{_LAST}.substring({_LAST}.indexOf(':') + 1)"
_TAGGED = f"{_LAST}.contains(':')"

_HOW = first_of((_TAGGED, sentence(MOVES, tag=_TAG)), otherwise=text(UNTAGGED))


def _unpinned(parameters: Parameters) -> str:
    moving = every(
        "CONTAINER.?image.hasValue()",
        f"!{_IMAGE}.contains('@')",
        *(f"!{_IMAGE}.startsWith({text(each)})" for each in parameters.texts("allowed-registries")),
        either(f"!{_TAGGED}", f"{_TAG} in {texts(parameters.texts('moving-tags'))}"),
    )
    found = containers_where(moving, told(UNPINNED, IMAGE_RULE.remediation, where="p.where", container="NAME", how=_HOW))
    return of_each(GPU_WORK, let("moving", found, first_of(("size(moving) > 0", "moving[0]"))))


IMAGE_NOT_PINNED = Form(IMAGE_RULE, POD_MAKERS, _unpinned)


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
