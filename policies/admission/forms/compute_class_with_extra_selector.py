"""The rule compute-class-with-extra-selector in CEL, of pods alone: flavors are the platform's own."""

from __future__ import annotations

from capacity.catalog.node_labels import COMPUTE_CLASS_LABEL
from policies.admission.cel import either, every, first_of, let, list_at, mapping_at, sentence, text, text_at, texts
from policies.admission.form import POD_MAKERS, Form, of_each, told
from policies.admission.scheduling_options import OPEN, TERMS, VIA
from policies.admission.variables import POD_SETS
from policies.rules.compute_class_with_extra_selector import EXTRA, EXTRA_REMEDY, RULE

_DEFAULTS = RULE.defaults()
_LABEL = text(COMPUTE_CLASS_LABEL)
_SELECTOR = mapping_at("p.pod", "nodeSelector")
_EXPRESSIONS = list_at("t", "matchExpressions")
_VALUES = list_at("e", "values")


def _demands(key: str) -> str:
    return every(f"{text_at('e', 'key')} == {key}", f"{text_at('e', 'operator')} in ['In', 'Exists']")


# A name is a list of one text, or of none: the last expression decides, as in the rule.
_VALUE = f"(size({_VALUES}) > 0 ? [e.values[0]] : [])"
_DEMANDED = f"{TERMS}.map(t, {_EXPRESSIONS}.filter(e, {_demands(_LABEL)}).map(e, {_VALUE})).filter(l, size(l) > 0)"
_LAST = "demanded[size(demanded) - 1]"
_BY_AFFINITY = let("demanded", _DEMANDED, first_of(("size(demanded) > 0", f"{_LAST}[size({_LAST}) - 1]"), otherwise="[]"))
_OWN = f"{_LABEL} in {_SELECTOR}"
_OWN_NAME = f"[string(p.pod.nodeSelector[{_LABEL}])]"

_VIA_LABEL = f"{VIA}{COMPUTE_CLASS_LABEL}="
_VIA_NAME = f"w.filter(x, x.startsWith({text(_VIA_LABEL)})).map(x, x.substring({len(_VIA_LABEL)}))"


def _problem(name: str, where: str, *more: str) -> str:
    """The problem of one selection; `more` are further conditions under which it has the label `k`."""
    has = either(f"k in {_SELECTOR}", f"{TERMS}.exists(t, {_EXPRESSIONS}.exists(e, {_demands('k')}))", *more)
    extra = f"{texts(sorted(_DEFAULTS.texts('labels')))}.filter(k, {has})"
    broken = every("size(name) > 0", "size(extra) > 0", f"!(name[0] in {texts(_DEFAULTS.texts('built-in-classes'))})")
    words = told(EXTRA, EXTRA_REMEDY, where=where, label=_LABEL, name="name[0]", extra="extra[0]")
    return let("name", name, let("extra", extra, first_of((broken, words))))


_ALONE = _problem(first_of((_OWN, _OWN_NAME), otherwise=_BY_AFFINITY), sentence("{where}.nodeSelector", where="p.where"))
_THROUGH = _problem(
    first_of((_OWN, _OWN_NAME), (f"size({_VIA_NAME}) > 0", _VIA_NAME), otherwise=_BY_AFFINITY),
    sentence("{where}.nodeSelector with {via}", where="p.where", via="w[1]"),
    f"w.exists(x, x.startsWith({text(VIA)} + k + '='))",
)
_FOUND = f"([{_ALONE}] + variables.ways.filter(w, w[1] != '' && ({OPEN})).map(w, {_THROUGH})).filter(s, s != '')"

FORM = Form(RULE, POD_MAKERS, of_each(POD_SETS, let("found", _FOUND, first_of(("size(found) > 0", "found[0]")))))
