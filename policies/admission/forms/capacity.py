"""How pods choose compute classes and flex-start nodes, in CEL, of pods alone: flavors and classes are the platform's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.node_labels import COMPUTE_CLASS_LABEL
from policies.admission.cel import (
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
    sentence,
    text,
    text_at,
    texts,
)
from policies.admission.form import POD_MAKERS, POD_SETS, Form, of_each, told
from policies.admission.pods import ASKS, JOB_AT, queued_metadata
from policies.admission.scheduling_options import FLEX_START, LANDS, NAMES_SPOT, NAMES_SPOT_ITSELF, OPEN, TERMS, VIA
from policies.inventory.reading.gke import FLEX_START_LABEL, PROVISIONING_LABEL
from policies.pods.interruption import NAMES_FLEX, ON_FLEX
from policies.rules.compute_class_with_extra_selector import EXTRA, EXTRA_REMEDY
from policies.rules.compute_class_with_extra_selector import RULE as CLASS_RULE
from policies.rules.flex_job_over_seven_days import ALSO, ANNOTATION, SELECTOR, TOO_LONG, TOO_LONG_REMEDY
from policies.rules.flex_job_over_seven_days import RULE as FLEX_RULE

if TYPE_CHECKING:
    from policies.judging import Parameters

# The rule compute-class-with-extra-selector in CEL, of pods alone: flavors are the platform's own.

_LABEL = text(COMPUTE_CLASS_LABEL)
_CLASS_SELECTOR = mapping_at("p.pod", "nodeSelector")
_EXPRESSIONS = list_at("t", "matchExpressions")
_VALUES = list_at("e", "values")


def _demands(key: str) -> str:
    return every(f"{text_at('e', 'key')} == {key}", f"{text_at('e', 'operator')} in ['In', 'Exists']")


# A name is a list of one text, or of none: the last expression decides, as in the rule.
_VALUE = f"(size({_VALUES}) > 0 ? [e.values[0]] : [])"
_DEMANDED = f"{TERMS}.map(t, {_EXPRESSIONS}.filter(e, {_demands(_LABEL)}).map(e, {_VALUE})).filter(l, size(l) > 0)"
_LAST = "demanded[size(demanded) - 1]"
_BY_AFFINITY = let("demanded", _DEMANDED, first_of(("size(demanded) > 0", f"{_LAST}[size({_LAST}) - 1]"), otherwise="[]"))
_OWN = f"{_LABEL} in {_CLASS_SELECTOR}"
_OWN_NAME = f"[string(p.pod.nodeSelector[{_LABEL}])]"

_VIA_LABEL = f"{VIA}{COMPUTE_CLASS_LABEL}="
_VIA_NAME = f"w.filter(x, x.startsWith({text(_VIA_LABEL)})).map(x, x.substring({len(_VIA_LABEL)}))"


def _problem(parameters: Parameters, name: str, where: str, *more: str) -> str:
    """The problem of one selection; `more` are further conditions under which it has the label `k`."""
    has = either(f"k in {_CLASS_SELECTOR}", f"{TERMS}.exists(t, {_EXPRESSIONS}.exists(e, {_demands('k')}))", *more)
    extra = f"{texts(sorted(parameters.texts('labels')))}.filter(k, {has})"
    broken = every("size(name) > 0", "size(extra) > 0", f"!(name[0] in {texts(parameters.texts('built-in-classes'))})")
    words = told(EXTRA, EXTRA_REMEDY, where=where, label=_LABEL, name="name[0]", extra="extra[0]")
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


COMPUTE_CLASS_WITH_EXTRA_SELECTOR = Form(CLASS_RULE, POD_MAKERS, _extra_selectors)


# The rule flex-job-over-seven-days in CEL, of pods alone: requests and classes are the platform's own.

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
"""What shows that `p` runs on flex-start nodes, each a text; none where nothing does for certain."""

_IGNORES = (
    f"{list_at('p', 'job', 'podFailurePolicy', 'rules')}.exists(r, {text_at('r', 'action')} == 'Ignore'"
    f" && {list_at('r', 'onPodConditions')}.exists(c, {text_at('c', 'type')} == 'DisruptionTarget'))"
)


def _asked(at: str, *steps: str) -> str:
    """The field with its path, in a list; an empty one where nothing is written."""
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
        _asked(sentence("{where}.activeDeadlineSeconds", where="p.where"), "p", "pod", "activeDeadlineSeconds"),
        _asked(text("spec.activeDeadlineSeconds"), "object", "spec", "activeDeadlineSeconds"),
        _asked(text("spec.runPolicy.activeDeadlineSeconds"), "object", "spec", "runPolicy", "activeDeadlineSeconds"),
        _asked(_OF_JOB, "p", "job", "activeDeadlineSeconds"),
    )
)
# A deadline says little of a Job that goes on after an interruption.
_CUT_OFF = first_of((every("p.?job.hasValue()", _IGNORES), "[]"), otherwise=_DEADLINES)
_ASKED = f"({_ANNOTATIONS}) + (size(flex) > 0 ? {_SELECTED} + ({_CUT_OFF}) : [])"
_ALSO = first_of(("size(flex) > 0", sentence(ALSO, by="flex[0]")))


def _long_jobs(parameters: Parameters) -> str:
    most = text(str(parameters.number("most-seconds")))
    long = f"({_ASKED}).filter(a, isQuantity(a[1]) && {amount('a[1]')}.compareTo(quantity({most})) > 0)"
    too_long = told(TOO_LONG, TOO_LONG_REMEDY, at="long[0][0]", seconds="long[0][1]", most=most, also=_ALSO)
    return of_each(POD_SETS, let("flex", _FLEX, let("long", long, first_of(("size(long) > 0", too_long)))))


FLEX_JOB_OVER_SEVEN_DAYS = Form(FLEX_RULE, POD_MAKERS, _long_jobs)
