"""CEL forms of rules: requests of containers, objects of a namespace, choice of capacity, and handling of interruptions.

A rule has no form if it is about objects that only the platform's program creates, if it compares objects with each other, or if the API
server or Kueue already checks it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.catalog.node_labels import COMPUTE_CLASS_LABEL
from flexspot.policies.admission.cel import (
    amount,
    as_text,
    either,
    entry,
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
from flexspot.policies.admission.checkpoints import PLACES
from flexspot.policies.admission.form import GPU_WORK, POD_SETS, WORK, Form, explain, of_each
from flexspot.policies.admission.pods import ASKS, JOB_AT, MATCHED, PLACED_BY, containers_where, queued_metadata, unbacked
from flexspot.policies.admission.scheduling_options import (
    FLEX_START,
    ITSELF,
    LANDS,
    MOST_GPUS,
    NAMES_SPOT,
    NAMES_SPOT_ITSELF,
    OPEN,
    QUEUED,
    REQUIRES_SPOT_ITSELF,
    SHOWN_BY,
    SPOT_IS_OF_GKE,
    TERMS,
    VIA,
    on_spot,
)
from flexspot.policies.inventory.pod_gpus import GPU_PREFIXES, ObjectKind
from flexspot.policies.inventory.pod_gpus import POD_MAKERS as KINDS
from flexspot.policies.inventory.reading.gke import FLEX_START_LABEL, PROVISIONING_LABEL
from flexspot.policies.pods.placement import NAMES_FLEX, ON_FLEX
from flexspot.policies.rules.gke_pools import EXTRA, EXTRA_REMEDY, compute_class_with_extra_selector
from flexspot.policies.rules.gpu_requests import (
    ABOVE,
    ABOVE_REMEDY,
    IDLE,
    IDLE_REMEDY,
    MOST,
    gpu_container_above_maximum,
    gpu_container_without_limit,
)
from flexspot.policies.rules.gpu_requests import (
    UNBACKED as UNBACKED_TEXT,
)
from flexspot.policies.rules.interruptions import (
    ALSO,
    ANNOTATION,
    AT_MOST,
    BY_DEFAULT,
    DIES,
    DIES_REMEDY,
    GIVEN,
    GRACE_TOO_LONG,
    GRACE_TOO_LONG_REMEDY,
    SELECTOR,
    TOO_LONG,
    TOO_LONG_REMEDY,
    UNLESS,
    flex_job_over_seven_days,
    grace_exceeds_notice,
    job_dies_on_interruption,
)
from flexspot.policies.rules.objects import MOVES, OWNERLESS, OWNERLESS_REMEDY, UNPINNED, UNTAGGED, image_not_pinned, missing_owner_labels
from flexspot.policies.rules.queued_work import UNQUEUED, UNQUEUED_REMEDY, job_without_queue
from flexspot.policies.rules.quotas import (
    DEVICES as QUOTA_DEVICES,
)
from flexspot.policies.rules.quotas import (
    GIVES,
    GPU_KEY,
    GPU_KEY_REMEDY,
    LIMITS,
    REFUSES,
    REQUESTS,
    SECTIONS,
    UNCOUNTED,
    UNCOUNTED_REMEDY,
    gpu_key_in_limit_range,
    quota_key_never_enforced,
)
from flexspot.policies.rules.storage import checkpoint_on_ephemeral_volume

if TYPE_CHECKING:
    from flexspot.policies.judging import Parameters


_UNBACKED = " + ".join(
    containers_where(
        unbacked(each),
        explain(UNBACKED_TEXT, gpu_container_without_limit.remediation, where="p.where", container="NAME", resource=text(each)),
    )
    for each in RESOURCES
)
_IDLE = explain(IDLE, IDLE_REMEDY, where="p.where", by="by")
_PLACED = let("by", PLACED_BY, first_of((f"by != '' && !({ASKS})", _IDLE)))

GPU_CONTAINER_WITHOUT_LIMIT = Form(
    gpu_container_without_limit,
    MATCHED,
    lambda _: of_each(WORK, let("unbacked", f"({_UNBACKED})", first_of(("size(unbacked) > 0", "unbacked[0]"), otherwise=_PLACED))),
)


# gpu-container-above-maximum: its parameter is the GPUs of the largest node of the pods' class.

_OF_CLASS = f"variables.facts[?({text(MOST_GPUS + '.')} + {text_at('p.pod', 'priorityClassName')})]"
_OF_PLATFORM = f"{_OF_CLASS}.or(variables.facts[?{text(MOST_GPUS)}])"


def _above(resource: str) -> str:
    limit = f"{optional('CONTAINER', 'resources', 'limits')}[?{text(resource)}]"
    count = as_text(f"{limit}.value()")
    return containers_where(
        every(f"{limit}.hasValue()", f"isQuantity({count})", f"{amount(count)}.compareTo(quantity(most)) > 0"),
        explain(ABOVE, ABOVE_REMEDY, where="p.where", container="NAME", count=count, resource=text(resource), most="most"),
    )


_ABOVE = f"({' + '.join(map(_above, RESOURCES))})"

GPU_CONTAINER_ABOVE_MAXIMUM = Form(
    gpu_container_above_maximum,
    MATCHED,
    lambda parameters: of_each(
        GPU_WORK,
        let(
            "most",
            f"{_OF_PLATFORM}.orValue({text(str(parameters.number(MOST)))})",
            let("above", _ABOVE, first_of(("size(above) > 0", "above[0]"))),
        ),
    ),
)


_IMAGE = text_at("CONTAINER", "image")
# A colon before the last slash belongs to a registry's port.
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
    found = containers_where(moving, explain(UNPINNED, image_not_pinned.remediation, where="p.where", container="NAME", how=_HOW))
    return of_each(GPU_WORK, let("moving", found, first_of(("size(moving) > 0", "moving[0]"))))


IMAGE_NOT_PINNED = Form(image_not_pinned, MATCHED, _unpinned)


def _of(section: str) -> str:
    effect = text(GIVES if section.startswith("default") else REFUSES)
    at = f"('spec.limits[' + string(i) + {text(f'].{section}[')} + '\"' + k + '\"]')"
    device = either(*(f"k.startsWith({text(each)})" for each in GPU_PREFIXES))
    # Only the first key is reported, because all keys have the same effect.
    return (
        f"{places(list_at('object', 'spec', 'limits'))}"
        f".filter(i, {optional('object.spec.limits[i]', section)}.orValue({{}}).exists(k, {device}))"
        f".map(i, object.spec.limits[i].{section}.filter(k, {device}).map(k, {explain(GPU_KEY, GPU_KEY_REMEDY, at=at, effect=effect)})[0])"
    )


GPU_KEY_IN_LIMIT_RANGE = Form(
    gpu_key_in_limit_range, (ObjectKind("", "LimitRange", "limitranges"),), lambda _: " + ".join(_of(section) for section in SECTIONS)
)


_RESOURCE = f"(k.startsWith({text(LIMITS)}) ? k.substring({len(LIMITS)}) : k)"
_UNCOUNTED = every(f"!k.startsWith({text(REQUESTS)})", either(*(f"{_RESOURCE}.startsWith({text(each)})" for each in QUOTA_DEVICES)))
_UNCOUNTED_PROBLEM = explain(UNCOUNTED, UNCOUNTED_REMEDY, at="('spec.hard[\"' + k + '\"]')", resource=_RESOURCE)

QUOTA_KEY_NEVER_ENFORCED = Form(
    quota_key_never_enforced,
    (ObjectKind("", "ResourceQuota", "resourcequotas"),),
    lambda _: f"{mapping_at('object', 'spec', 'hard')}.filter(k, {_UNCOUNTED}).map(k, {_UNCOUNTED_PROBLEM})",
)


# compute-class-with-extra-selector, only for pods: the platform itself creates the flavors.

_LABEL = text(COMPUTE_CLASS_LABEL)
_CLASS_SELECTOR = mapping_at("p.pod", "nodeSelector")
_EXPRESSIONS = list_at("t", "matchExpressions")
_VALUES = list_at("e", "values")


def _demands(key: str) -> str:
    return every(f"{text_at('e', 'key')} == {key}", f"{text_at('e', 'operator')} in ['In', 'Exists']")


# A name is a list with one string or none. The last expression decides, as in the rule.
_VALUE = f"(size({_VALUES}) > 0 ? [e.values[0]] : [])"
_DEMANDED = f"{TERMS}.map(t, {_EXPRESSIONS}.filter(e, {_demands(_LABEL)}).map(e, {_VALUE})).filter(l, size(l) > 0)"
_LAST_DEMANDED = "demanded[size(demanded) - 1]"
_BY_AFFINITY = let("demanded", _DEMANDED, first_of(("size(demanded) > 0", f"{_LAST_DEMANDED}[size({_LAST_DEMANDED}) - 1]"), otherwise="[]"))
_OWN = f"{_LABEL} in {_CLASS_SELECTOR}"
_OWN_NAME = f"[string(p.pod.nodeSelector[{_LABEL}])]"

_VIA_LABEL = f"{VIA}{COMPUTE_CLASS_LABEL}="
_VIA_NAME = f"w.filter(x, x.startsWith({text(_VIA_LABEL)})).map(x, x.substring({len(_VIA_LABEL)}))"


def _problem(parameters: Parameters, name: str, where: str, *more: str) -> str:
    """Return CEL for the problem of one selection. `more` are further conditions under which it has the label `k`."""
    has = either(f"k in {_CLASS_SELECTOR}", f"{TERMS}.exists(t, {_EXPRESSIONS}.exists(e, {_demands('k')}))", *more)
    extra = f"{texts(sorted(parameters.texts('labels')))}.filter(k, {has})"
    broken = every("size(name) > 0", "size(extra) > 0", f"!(name[0] in {texts(parameters.texts('built-in-classes'))})")
    words = explain(EXTRA, EXTRA_REMEDY, where=where, label=_LABEL, name="name[0]", extra="extra[0]")
    return let("name", name, let("extra", extra, first_of((broken, words))))


def _extra_selectors(parameters: Parameters) -> str:
    alone = _problem(parameters, first_of((_OWN, _OWN_NAME), otherwise=_BY_AFFINITY), sentence("{where}.nodeSelector", where="p.where"))
    through = _problem(
        parameters,
        first_of((_OWN, _OWN_NAME), (f"size({_VIA_NAME}) > 0", _VIA_NAME), otherwise=_BY_AFFINITY),
        sentence("{where}.nodeSelector with {via}", where="p.where", via="w[1]"),
        f"w.exists(x, x.startsWith({text(VIA)} + k + '='))",
    )
    found = f"([{alone}] + variables.ways.filter(w, w[1] != '' && ({OPEN})).map(w, {through})).filter(s, s != '')"
    return of_each(POD_SETS, let("found", found, first_of(("size(found) > 0", "found[0]"))))


COMPUTE_CLASS_WITH_EXTRA_SELECTOR = Form(compute_class_with_extra_selector, MATCHED, _extra_selectors)


# flex-job-over-seven-days, only for pods: the platform itself creates the requests and classes.

_LABELS = {FLEX_START_LABEL: "true", PROVISIONING_LABEL: "flex-start"}

_FLEX_SELECTOR = mapping_at("p.pod", "nodeSelector")
_NAMED_ITSELF = either(*(f"{entry(_FLEX_SELECTOR, text(key))} == {text(value)}" for key, value in _LABELS.items()))
_NAMED_BY_FLAVOR = either(*(f"{text(f'{VIA}{key}={value}')} in w" for key, value in _LABELS.items()))
_ITSELF = first_of(
    (every(_NAMED_ITSELF, f"!({NAMES_SPOT_ITSELF})"), f"[{text(NAMES_FLEX.format(via='its nodeSelector'))}]"), otherwise="[]"
)
_NAMES = every(f"({_NAMED_ITSELF}) || ({_NAMED_BY_FLAVOR})", f"!({NAMES_SPOT_ITSELF})", f"w[3] != {text(NAMES_SPOT)}")
_BY_FLAVOR = f"variables.ways.filter(w, w[1] != '' && ({OPEN}) && ({_NAMES})).map(w, {sentence(NAMES_FLEX, via='w[1]')})"
_BY_POOL = f"variables.ways.filter(w, {text(FLEX_START)} in w && ({LANDS})).map(w, {sentence(ON_FLEX, pool='w[0]')})"
_NAMED = first_of(("variables.queue == ''", _ITSELF), otherwise=_BY_FLAVOR)
_FLEX = first_of((ASKS, f"({_NAMED}) + {_BY_POOL}"), otherwise="[]")
"""CEL for the reasons why `p` certainly runs on flex-start nodes, as strings."""

_IGNORES = (
    f"{list_at('p', 'job', 'podFailurePolicy', 'rules')}.exists(r, {text_at('r', 'action')} == 'Ignore'"
    f" && {list_at('r', 'onPodConditions')}.exists(c, {text_at('c', 'type')} == 'DisruptionTarget'))"
)


def _limit_at(at: str, *steps: str) -> str:
    """Return CEL for a list with the field's path and value. Empty if the field is not set."""
    field = optional(*steps)
    return f"({field}.hasValue() ? [[{at}, {as_text(field + '.value()')}]] : [])"


def _annotated(mapping: str) -> str:
    at = text(f'metadata.annotations["{ANNOTATION}"]')
    return f"({text(ANNOTATION)} in ({mapping}) ? [[{at}, string(({mapping})[{text(ANNOTATION)}])]] : [])"


_ANNOTATIONS = " + ".join(
    _annotated(each)
    for each in (
        mapping_at("object", "metadata", "annotations"),
        queued_metadata("annotations"),
        mapping_at("p.template", "metadata", "annotations"),
    )
)
_SELECTED_AT = sentence('{where}.nodeSelector["' + SELECTOR + '"]', where="p.where")
_SELECTED = f"({text(SELECTOR)} in {_FLEX_SELECTOR} ? [[{_SELECTED_AT}, string(p.pod.nodeSelector[{text(SELECTOR)}])]] : [])"
_OF_JOB = f"{JOB_AT} + '.activeDeadlineSeconds'"
_DEADLINES = " + ".join(
    (
        _limit_at(sentence("{where}.activeDeadlineSeconds", where="p.where"), "p", "pod", "activeDeadlineSeconds"),
        _limit_at(text("spec.activeDeadlineSeconds"), "object", "spec", "activeDeadlineSeconds"),
        _limit_at(text("spec.runPolicy.activeDeadlineSeconds"), "object", "spec", "runPolicy", "activeDeadlineSeconds"),
        _limit_at(_OF_JOB, "p", "job", "activeDeadlineSeconds"),
    )
)
# A deadline proves nothing for a Job that continues after an interruption.
_CUT_OFF = first_of((every("p.?job.hasValue()", _IGNORES), "[]"), otherwise=_DEADLINES)
_LIMITS = f"({_ANNOTATIONS}) + (size(flex) > 0 ? {_SELECTED} + ({_CUT_OFF}) : [])"
_ALSO = first_of(("size(flex) > 0", sentence(ALSO, by="flex[0]")))


def _long_jobs(parameters: Parameters) -> str:
    most = text(str(parameters.number("most-seconds")))
    long = f"({_LIMITS}).filter(a, isQuantity(a[1]) && {amount('a[1]')}.compareTo(quantity({most})) > 0)"
    too_long = explain(TOO_LONG, TOO_LONG_REMEDY, at="long[0][0]", seconds="long[0][1]", most=most, also=_ALSO)
    return of_each(POD_SETS, let("flex", _FLEX, let("long", long, first_of(("size(long) > 0", too_long)))))


FLEX_JOB_OVER_SEVEN_DAYS = Form(flex_job_over_seven_days, MATCHED, _long_jobs)


_FIELD = optional("p.pod", "terminationGracePeriodSeconds")
_SHORTEST = "string(spot.map(w, int(w[2])).min())"


def _long_grace(parameters: Parameters) -> str:
    grace = f"int({_FIELD}.orValue({parameters.number('kubernetes-default-seconds')}))"
    written = f"({_FIELD}.hasValue() ? '' : {text(BY_DEFAULT)}) + string({grace})"
    gke, ec2, longest = (text(str(parameters.number(f"{name}-seconds"))) for name in ("gke", "ec2", "longest"))
    default = parameters.number("kubernetes-default-seconds")
    # The API server fills in the default.
    counted_on = f"int({_FIELD}.orValue({default})) != {default}"
    # The pool is not known, so a written period is compared with the default notice of such nodes.
    itself = f"{counted_on} && (({NAMES_SPOT_ITSELF}) || ({REQUIRES_SPOT_ITSELF}))"
    cases = [("size(spot) > 0", _SHORTEST, GIVEN), (f"{itself} && ({SPOT_IS_OF_GKE})", gke, UNLESS), (itself, ec2, GIVEN)]
    notice = first_of(*((condition, seconds) for condition, seconds, _ in cases), otherwise=longest)
    given = first_of(
        *((condition, sentence(pattern, notice="notice")) for condition, _, pattern in cases), otherwise=sentence(AT_MOST, notice="notice")
    )
    too_long = explain(GRACE_TOO_LONG, GRACE_TOO_LONG_REMEDY, where="p.where", grace=written, by=SHOWN_BY, given=given, notice="notice")
    exceeded = let("notice", notice, first_of((f"{grace} > int(notice)", too_long)))
    long = f"{grace} > {parameters.number('gke-seconds')}"
    # Work without GPUs is placed only by its own fields. The empty list has the type of ways, which the API server requires.
    other_work = f"{WORK}.filter(p, !({ASKS}) && {counted_on} && {long} && (({NAMES_SPOT_ITSELF}) || ({REQUIRES_SPOT_ITSELF})))"
    own = let("spot", "variables.ways.filter(w, false)", let("named", ITSELF, exceeded))
    return f"{of_each(GPU_WORK, first_of((long, on_spot(exceeded))))} + {of_each(other_work, own)}"


GRACE_EXCEEDS_NOTICE = Form(grace_exceeds_notice, MATCHED, _long_grace)


_PER_INDEX = optional("p", "job", "backoffLimitPerIndex")
_LIMIT = optional("p", "job", "backoffLimit")


def _dying(parameters: Parameters) -> str:
    least = parameters.number("least-interruptions")
    survives = either(
        f"{list_at('p', 'job', 'podFailurePolicy', 'rules')}.exists(r, {text_at('r', 'action')} == 'Ignore'"
        f" && {list_at('r', 'onPodConditions')}.exists(c, {text_at('c', 'type')} == 'DisruptionTarget'))",
        f"{_PER_INDEX}.hasValue() ? int({_PER_INDEX}.value()) >= {least} : int({_LIMIT}.orValue(6)) >= {least}",
        f"object.kind == 'JobSet' && int({optional('object', 'spec', 'failurePolicy', 'maxRestarts')}.orValue(0)) >= {least}",
    )
    return of_each(GPU_WORK, first_of((every("p.?job.hasValue()", f"!({survives})"), _DIES)))


_INTERRUPTED_WRITTEN = f"{_LIMIT}.hasValue() ? {as_text(_LIMIT + '.value()')} : 'None'"
_DIES = on_spot(explain(DIES, DIES_REMEDY, where="p.where", by=SHOWN_BY, limit=_INTERRUPTED_WRITTEN))

_WITH_JOBS = {maker.kind for maker in KINDS.values() if maker.makes_jobs}

JOB_DIES_ON_INTERRUPTION = Form(
    job_dies_on_interruption,
    tuple(each for each in MATCHED if each.kind in _WITH_JOBS),
    _dying,
)


_LOST = f"variables.{PLACES}.filter(l, size(l) > 0).map(l, {explain('{lost}', checkpoint_on_ephemeral_volume.remediation, lost='l[0]')})"

CHECKPOINT_ON_EPHEMERAL_VOLUME = Form(
    checkpoint_on_ephemeral_volume,
    MATCHED,
    lambda parameters: f"object.kind in {texts(parameters.texts('kinds'))} ? {_LOST} : []",
    kinds="kinds",
)


# job-without-queue. Kueue has assigned the queue called default to work without a queue before the policy is evaluated.

_UNQUEUED = every(
    "!object.?spec.?managedBy.hasValue()",
    "variables.queue == ''",
    f"{text(QUEUED)} in variables.facts",
)

JOB_WITHOUT_QUEUE = Form(
    job_without_queue,
    MATCHED,
    lambda parameters: of_each(
        f"(object.kind in {texts(parameters.texts('kinds'))} ? {GPU_WORK} : [])",
        first_of((_UNQUEUED, explain(UNQUEUED, UNQUEUED_REMEDY))),
    ),
    kinds="kinds",
)


# missing-owner-labels, only for work: the platform itself creates the pools.

_OWN_LABELS, _OF_PODS, _OF_NAMESPACE = (mapping_at(each, "metadata", "labels") for each in ("object", "p.template", "namespaceObject"))


def _ownerless(parameters: Parameters) -> str:
    keys = parameters.texts("label-keys")
    labels = (_OWN_LABELS, _OF_PODS, "variables.queueLabels", _OF_NAMESPACE)
    owned = either(*(f"{texts(keys)}.exists(k, {entry(each, 'k')} != '')" for each in labels))
    return of_each(GPU_WORK, first_of((f"!({owned})", explain(OWNERLESS, OWNERLESS_REMEDY.format(key=keys[0])))))


MISSING_OWNER_LABELS = Form(missing_owner_labels, MATCHED, _ownerless)


@cache
def all_forms() -> tuple[Form, ...]:
    """Return all forms, by code of their rule."""
    return tuple(sorted((each for each in globals().values() if isinstance(each, Form)), key=lambda form: form.rule.code))
