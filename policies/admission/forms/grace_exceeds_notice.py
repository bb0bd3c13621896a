"""The rule grace-exceeds-notice in CEL."""

from __future__ import annotations

from policies.admission.cel import first_of, let, optional, text
from policies.admission.form import POD_MAKERS, Form, of_each, told
from policies.admission.scheduling_options import SHOWN_BY, on_spot
from policies.admission.variables import GPU_WORK
from policies.rules.grace_exceeds_notice import BY_DEFAULT, RULE, TOO_LONG, TOO_LONG_REMEDY

_DEFAULTS = RULE.defaults()
_LONGEST = str(_DEFAULTS.number("longest-seconds"))
_FIELD = optional("p.pod", "terminationGracePeriodSeconds")
_GRACE = f"int({_FIELD}.orValue({_DEFAULTS.number('kubernetes-default-seconds')}))"
_WRITTEN = f"({_FIELD}.hasValue() ? '' : {text(BY_DEFAULT)}) + string({_GRACE})"

_SHORTEST = "spot.filter(w, spot.all(o, int(o[2]) >= int(w[2])))[0][2]"
_NOTICE = first_of(("size(spot) > 0", _SHORTEST), otherwise=text(_LONGEST))
_TOLD = told(TOO_LONG, TOO_LONG_REMEDY, where="p.where", grace=_WRITTEN, by=SHOWN_BY, notice="notice")
_ON_SPOT = on_spot(let("notice", _NOTICE, first_of((f"{_GRACE} > int(notice)", _TOLD))))

FORM = Form(RULE, POD_MAKERS, of_each(GPU_WORK, first_of((f"{_GRACE} > {_DEFAULTS.number('gke-seconds')}", _ON_SPOT))))
