"""The rule job-dies-on-interruption in CEL."""

from __future__ import annotations

from policies.admission.cel import either, every, first_of, list_at, optional, text_at
from policies.admission.form import POD_MAKERS, Form, of_each, told
from policies.admission.scheduling_options import SHOWN_BY, on_spot
from policies.admission.variables import GPU_WORK
from policies.inventory.pod_templates import POD_MAKERS as KINDS
from policies.rules.job_dies_on_interruption import DIES, DIES_REMEDY, RULE

_LEAST = RULE.defaults().number("least-interruptions")
_PER_INDEX = optional("p", "job", "backoffLimitPerIndex")
_LIMIT = optional("p", "job", "backoffLimit")

_SURVIVES = either(
    f"{list_at('p', 'job', 'podFailurePolicy', 'rules')}.exists(r, {text_at('r', 'action')} == 'Ignore'"
    f" && {list_at('r', 'onPodConditions')}.exists(c, {text_at('c', 'type')} == 'DisruptionTarget'))",
    f"{_PER_INDEX}.hasValue() ? int({_PER_INDEX}.value()) >= {_LEAST} : int({_LIMIT}.orValue(6)) >= {_LEAST}",
    f"object.kind == 'JobSet' && int({optional('object', 'spec', 'failurePolicy', 'maxRestarts')}.orValue(0)) >= {_LEAST}",
)
_WRITTEN = f"{_LIMIT}.hasValue() ? string({_LIMIT}.value()) : 'None'"
_DIES = on_spot(told(DIES, DIES_REMEDY, where="p.where", by=SHOWN_BY, limit=_WRITTEN))

_WITH_JOBS = {maker.kind for maker in KINDS.values() if maker.makes_jobs}

FORM = Form(
    RULE,
    tuple(each for each in POD_MAKERS if each.kind in _WITH_JOBS),
    of_each(GPU_WORK, first_of((every("p.?job.hasValue()", f"!({_SURVIVES})"), _DIES))),
)
