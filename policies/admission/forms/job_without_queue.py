"""The rule job-without-queue in CEL. Before it is asked, Kueue has given the queue called default to what names none."""

from __future__ import annotations

from policies.admission.cel import every, first_of, text, texts
from policies.admission.form import POD_MAKERS, Form, of_each, told
from policies.admission.scheduling_options import QUEUE
from policies.admission.variables import GPU_WORK
from policies.rules.job_without_queue import RULE, UNQUEUED, UNQUEUED_REMEDY

_KINDS = RULE.defaults().texts("kinds")

_UNQUEUED = every(
    "!object.?spec.?managedBy.hasValue()",
    "variables.queue == ''",
    f"variables.facts.exists(k, k.startsWith({text(QUEUE)}))",
)

FORM = Form(
    RULE,
    tuple(each for each in POD_MAKERS if each.kind in _KINDS),
    of_each(f"(object.kind in {texts(_KINDS)} ? {GPU_WORK} : [])", first_of((_UNQUEUED, told(UNQUEUED, UNQUEUED_REMEDY)))),
)
