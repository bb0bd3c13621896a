"""How work bears interruptions, and whose it is, in CEL."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from policies.values.parameters import Parameters

# The rule grace-exceeds-notice in CEL.

_FIELD = optional("p.pod", "terminationGracePeriodSeconds")
_SHORTEST = "string(spot.map(w, int(w[2])).min())"


def _long_grace(parameters: Parameters) -> str:
    grace = f"int({_FIELD}.orValue({parameters.number('kubernetes-default-seconds')}))"
    written = f"({_FIELD}.hasValue() ? '' : {text(BY_DEFAULT)}) + string({grace})"
    notice = first_of(("size(spot) > 0", _SHORTEST), otherwise=text(str(parameters.number("longest-seconds"))))
    too_long = told(TOO_LONG, TOO_LONG_REMEDY, where="p.where", grace=written, by=SHOWN_BY, notice="notice")
    by_spot = on_spot(let("notice", notice, first_of((f"{grace} > int(notice)", too_long))))
    return of_each(GPU_WORK, first_of((f"{grace} > {parameters.number('gke-seconds')}", by_spot)))


GRACE_EXCEEDS_NOTICE = Form(GRACE_RULE, POD_MAKERS, _long_grace)


# The rule job-dies-on-interruption in CEL.

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
_DIES = on_spot(told(DIES, DIES_REMEDY, where="p.where", by=SHOWN_BY, limit=_INTERRUPTED_WRITTEN))

_WITH_JOBS = {maker.kind for maker in KINDS.values() if maker.makes_jobs}

JOB_DIES_ON_INTERRUPTION = Form(
    INTERRUPTED_RULE,
    tuple(each for each in POD_MAKERS if each.kind in _WITH_JOBS),
    _dying,
)


# The rule checkpoint-on-ephemeral-volume in CEL.

_LOST = f"variables.{PLACES}.filter(l, size(l) > 0).map(l, {told('{lost}', CHECKPOINT_RULE.remediation, lost='l[0]')})"

CHECKPOINT_ON_EPHEMERAL_VOLUME = Form(
    CHECKPOINT_RULE,
    POD_MAKERS,
    lambda parameters: f"object.kind in {texts(parameters.texts('kinds'))} ? {_LOST} : []",
    kinds="kinds",
)


# The rule job-without-queue in CEL. Before it is asked, Kueue has given the queue called default to what names none.

_UNQUEUED = every(
    "!object.?spec.?managedBy.hasValue()",
    "variables.queue == ''",
    f"variables.facts.exists(k, k.startsWith({text(QUEUE)}))",
)

JOB_WITHOUT_QUEUE = Form(
    QUEUE_RULE,
    POD_MAKERS,
    lambda parameters: of_each(
        f"(object.kind in {texts(parameters.texts('kinds'))} ? {GPU_WORK} : [])", first_of((_UNQUEUED, told(UNQUEUED, UNQUEUED_REMEDY)))
    ),
    kinds="kinds",
)


# The rule missing-owner-labels in CEL, of work alone: pools are the platform's own.

_OWN, _OF_PODS, _OF_NAMESPACE = (mapping_at(each, "metadata", "labels") for each in ("object", "p.template", "namespaceObject"))


def _ownerless(parameters: Parameters) -> str:
    keys = parameters.texts("label-keys")
    labels = (_OWN, _OF_PODS, "variables.queueLabels", _OF_NAMESPACE)
    owned = either(*(f"{texts(keys)}.exists(k, {entry(each, 'k')} != '')" for each in labels))
    return of_each(GPU_WORK, first_of((f"!({owned})", told(OWNERLESS, OWNERLESS_REMEDY.format(key=keys[0])))))


MISSING_OWNER_LABELS = Form(OWNER_RULE, POD_MAKERS, _ownerless)
