"""How work bears interruptions, and whose it is, in CEL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.admission.cel import (
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
from policies.admission.checkpoints import PLACES
from policies.admission.form import GPU_WORK, POD_MAKERS, WORK, Form, of_each, told
from policies.admission.pods import ASKS
from policies.admission.scheduling_options import (
    ITSELF,
    NAMES_SPOT_ITSELF,
    QUEUE,
    REQUIRES_SPOT_ITSELF,
    SHOWN_BY,
    SPOT_IS_OF_GKE,
    on_spot,
)
from policies.inventory.pod_gpus import POD_MAKERS as KINDS
from policies.rules.checkpoint_on_ephemeral_volume import RULE as CHECKPOINT_RULE
from policies.rules.grace_exceeds_notice import AT_MOST, BY_DEFAULT, GIVEN, TOO_LONG, TOO_LONG_REMEDY, UNLESS
from policies.rules.grace_exceeds_notice import RULE as GRACE_RULE
from policies.rules.job_dies_on_interruption import DIES, DIES_REMEDY
from policies.rules.job_dies_on_interruption import RULE as INTERRUPTED_RULE
from policies.rules.job_without_queue import RULE as QUEUE_RULE
from policies.rules.job_without_queue import UNQUEUED, UNQUEUED_REMEDY
from policies.rules.missing_owner_labels import OWNERLESS, OWNERLESS_REMEDY
from policies.rules.missing_owner_labels import RULE as OWNER_RULE

if TYPE_CHECKING:
    from policies.judging import Parameters

# The rule grace-exceeds-notice in CEL.

_FIELD = optional("p.pod", "terminationGracePeriodSeconds")
_SHORTEST = "string(spot.map(w, int(w[2])).min())"


def _long_grace(parameters: Parameters) -> str:
    grace = f"int({_FIELD}.orValue({parameters.number('kubernetes-default-seconds')}))"
    written = f"({_FIELD}.hasValue() ? '' : {text(BY_DEFAULT)}) + string({grace})"
    gke, ec2, longest = (text(str(parameters.number(f"{name}-seconds"))) for name in ("gke", "ec2", "longest"))
    default = parameters.number("kubernetes-default-seconds")
    # The API server fills in what nobody wrote.
    counted_on = f"int({_FIELD}.orValue({default})) != {default}"
    # As nobody sees the pool, what somebody wrote is held against what such nodes give by default.
    itself = f"{counted_on} && (({NAMES_SPOT_ITSELF}) || ({REQUIRES_SPOT_ITSELF}))"
    cases = [("size(spot) > 0", _SHORTEST, GIVEN), (f"{itself} && ({SPOT_IS_OF_GKE})", gke, UNLESS), (itself, ec2, GIVEN)]
    notice = first_of(*((condition, seconds) for condition, seconds, _ in cases), otherwise=longest)
    given = first_of(
        *((condition, sentence(told_as, notice="notice")) for condition, _, told_as in cases), otherwise=sentence(AT_MOST, notice="notice")
    )
    too_long = told(TOO_LONG, TOO_LONG_REMEDY, where="p.where", grace=written, by=SHOWN_BY, given=given, notice="notice")
    held = let("notice", notice, first_of((f"{grace} > int(notice)", too_long)))
    long = f"{grace} > {parameters.number('gke-seconds')}"
    # Of what asks for no GPUs only its own fields say where it runs. No way, but of the type of ways, which the API server asks for.
    beside = f"{WORK}.filter(p, !({ASKS}) && {counted_on} && {long} && (({NAMES_SPOT_ITSELF}) || ({REQUIRES_SPOT_ITSELF})))"
    own = let("spot", "variables.ways.filter(w, false)", let("named", ITSELF, held))
    return f"{of_each(GPU_WORK, first_of((long, on_spot(held))))} + {of_each(beside, own)}"


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
