"""The rule flex-job-over-seven-days in CEL, of pods alone: requests and classes are the platform's own."""

from __future__ import annotations

from policies.admission.cel import amount, either, entry, every, first_of, let, list_at, mapping_at, optional, sentence, text, text_at
from policies.admission.form import POD_MAKERS, Form, of_each, told
from policies.admission.pod_gpus import ASKS
from policies.admission.pod_sets import queued_metadata
from policies.admission.scheduling_options import FLEX_START, LANDS, NAMES_SPOT, NAMES_SPOT_ITSELF, OPEN, VIA
from policies.admission.variables import POD_SETS
from policies.inventory.gke_nodes import FLEX_START_LABEL, PROVISIONING_LABEL
from policies.pods.interruption import NAMES_FLEX, ON_FLEX
from policies.rules.flex_job_over_seven_days import ALSO, ANNOTATION, RULE, SELECTOR, TOO_LONG, TOO_LONG_REMEDY

_MOST = str(RULE.defaults().number("most-seconds"))
_LABELS = {FLEX_START_LABEL: "true", PROVISIONING_LABEL: "flex-start"}

_SELECTOR = mapping_at("p.pod", "nodeSelector")
_NAMED_ITSELF = either(*(f"{entry(_SELECTOR, text(key))} == {text(value)}" for key, value in _LABELS.items()))
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
    return f"({field}.hasValue() ? [[{at}, string({field}.value())]] : [])"


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
_SELECTED = f"({text(SELECTOR)} in {_SELECTOR} ? [[{_SELECTED_AT}, string(p.pod.nodeSelector[{text(SELECTOR)}])]] : [])"
_OF_JOB = "p.where.substring(0, p.where.lastIndexOf('.template.spec')) + '.activeDeadlineSeconds'"
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
_LONG = f"({_ASKED}).filter(a, isQuantity(a[1]) && {amount('a[1]')}.compareTo(quantity({text(_MOST)})) > 0)"
_ALSO = first_of(("size(flex) > 0", sentence(ALSO, by="flex[0]")))
_TOLD = told(TOO_LONG, TOO_LONG_REMEDY, at="long[0][0]", seconds="long[0][1]", most=text(_MOST), also=_ALSO)

FORM = Form(RULE, POD_MAKERS, of_each(POD_SETS, let("flex", _FLEX, let("long", _LONG, first_of(("size(long) > 0", _TOLD))))))
