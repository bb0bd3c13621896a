"""How work bears interruptions, and whose it is, in CEL."""

from __future__ import annotations

from policies.admission.cel import as_text, either, entry, every, first_of, let, list_at, mapping_at, optional, text, text_at, texts
from policies.admission.checkpoints import PLACES
from policies.admission.form import GPU_WORK, POD_MAKERS, Form, of_each, told
from policies.admission.scheduling_options import QUEUE, SHOWN_BY, on_spot
from policies.inventory.pod_gpus import POD_MAKERS as KINDS
from policies.rules.checkpoint_on_ephemeral_volume import RULE as CHECKPOINT_RULE
from policies.rules.grace_exceeds_notice import BY_DEFAULT, TOO_LONG, TOO_LONG_REMEDY
from policies.rules.grace_exceeds_notice import RULE as GRACE_RULE
from policies.rules.job_dies_on_interruption import DIES, DIES_REMEDY
from policies.rules.job_dies_on_interruption import RULE as INTERRUPTED_RULE
from policies.rules.job_without_queue import RULE as QUEUE_RULE
from policies.rules.job_without_queue import UNQUEUED, UNQUEUED_REMEDY
from policies.rules.missing_owner_labels import OWNERLESS, OWNERLESS_REMEDY
from policies.rules.missing_owner_labels import RULE as OWNER_RULE

# The rule grace-exceeds-notice in CEL.

_DEFAULTS = GRACE_RULE.defaults()
_LONGEST = str(_DEFAULTS.number("longest-seconds"))
_FIELD = optional("p.pod", "terminationGracePeriodSeconds")
_GRACE = f"int({_FIELD}.orValue({_DEFAULTS.number('kubernetes-default-seconds')}))"
_GRACE_WRITTEN = f"({_FIELD}.hasValue() ? '' : {text(BY_DEFAULT)}) + string({_GRACE})"

_SHORTEST = "string(spot.map(w, int(w[2])).min())"
_NOTICE = first_of(("size(spot) > 0", _SHORTEST), otherwise=text(_LONGEST))
_TOLD = told(TOO_LONG, TOO_LONG_REMEDY, where="p.where", grace=_GRACE_WRITTEN, by=SHOWN_BY, notice="notice")
_ON_SPOT = on_spot(let("notice", _NOTICE, first_of((f"{_GRACE} > int(notice)", _TOLD))))

GRACE_EXCEEDS_NOTICE = Form(
    GRACE_RULE, POD_MAKERS, of_each(GPU_WORK, first_of((f"{_GRACE} > {_DEFAULTS.number('gke-seconds')}", _ON_SPOT)))
)


# The rule job-dies-on-interruption in CEL.

_LEAST = INTERRUPTED_RULE.defaults().number("least-interruptions")
_PER_INDEX = optional("p", "job", "backoffLimitPerIndex")
_LIMIT = optional("p", "job", "backoffLimit")

_SURVIVES = either(
    f"{list_at('p', 'job', 'podFailurePolicy', 'rules')}.exists(r, {text_at('r', 'action')} == 'Ignore'"
    f" && {list_at('r', 'onPodConditions')}.exists(c, {text_at('c', 'type')} == 'DisruptionTarget'))",
    f"{_PER_INDEX}.hasValue() ? int({_PER_INDEX}.value()) >= {_LEAST} : int({_LIMIT}.orValue(6)) >= {_LEAST}",
    f"object.kind == 'JobSet' && int({optional('object', 'spec', 'failurePolicy', 'maxRestarts')}.orValue(0)) >= {_LEAST}",
)
_INTERRUPTED_WRITTEN = f"{_LIMIT}.hasValue() ? {as_text(_LIMIT + '.value()')} : 'None'"
_DIES = on_spot(told(DIES, DIES_REMEDY, where="p.where", by=SHOWN_BY, limit=_INTERRUPTED_WRITTEN))

_WITH_JOBS = {maker.kind for maker in KINDS.values() if maker.makes_jobs}

JOB_DIES_ON_INTERRUPTION = Form(
    INTERRUPTED_RULE,
    tuple(each for each in POD_MAKERS if each.kind in _WITH_JOBS),
    of_each(GPU_WORK, first_of((every("p.?job.hasValue()", f"!({_SURVIVES})"), _DIES))),
)


# The rule checkpoint-on-ephemeral-volume in CEL.

_CHECKPOINT_KINDS = CHECKPOINT_RULE.defaults().texts("kinds")
_LOST = f"variables.{PLACES}.filter(l, size(l) > 0).map(l, {told('{lost}', CHECKPOINT_RULE.remediation, lost='l[0]')})"

CHECKPOINT_ON_EPHEMERAL_VOLUME = Form(
    CHECKPOINT_RULE,
    tuple(each for each in POD_MAKERS if each.kind in _CHECKPOINT_KINDS),
    f"object.kind in {texts(_CHECKPOINT_KINDS)} ? {_LOST} : []",
)


# The rule job-without-queue in CEL. Before it is asked, Kueue has given the queue called default to what names none.

_QUEUE_KINDS = QUEUE_RULE.defaults().texts("kinds")

_UNQUEUED = every(
    "!object.?spec.?managedBy.hasValue()",
    "variables.queue == ''",
    f"variables.facts.exists(k, k.startsWith({text(QUEUE)}))",
)

JOB_WITHOUT_QUEUE = Form(
    QUEUE_RULE,
    tuple(each for each in POD_MAKERS if each.kind in _QUEUE_KINDS),
    of_each(f"(object.kind in {texts(_QUEUE_KINDS)} ? {GPU_WORK} : [])", first_of((_UNQUEUED, told(UNQUEUED, UNQUEUED_REMEDY)))),
)


# The rule missing-owner-labels in CEL, of work alone: pools are the platform's own.

_KEYS = OWNER_RULE.defaults().texts("label-keys")


def _names_owner(labels: str) -> str:
    return f"{texts(_KEYS)}.exists(k, {entry(labels, 'k')} != '')"


_OWNED = either(
    _names_owner(mapping_at("object", "metadata", "labels")),
    _names_owner(mapping_at("p.template", "metadata", "labels")),
    _names_owner("variables.queueLabels"),
    _names_owner(mapping_at("namespaceObject", "metadata", "labels")),
)

MISSING_OWNER_LABELS = Form(
    OWNER_RULE, POD_MAKERS, of_each(GPU_WORK, first_of((f"!({_OWNED})", told(OWNERLESS, OWNERLESS_REMEDY.format(key=_KEYS[0])))))
)
