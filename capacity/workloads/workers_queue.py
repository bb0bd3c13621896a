"""The queues that workers pull from, and what is wrong with one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.platform import Platform
from capacity.settings.problems import SettingsProblem
from capacity.settings.storage import LEASE_MARGIN_SECONDS

if TYPE_CHECKING:
    from capacity.workloads.place import Place
    from capacity.workloads.workers_request import QueueWorkersRequest

_PUBSUB = re.compile(r"projects/[a-z0-9.:-]+/subscriptions/[A-Za-z][A-Za-z0-9_.~+%-]{2,254}")
_SQS = re.compile(r"https://sqs\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(\.cn)?/\d{12}/[A-Za-z0-9_-]{1,80}")
_ANY_SQS = re.compile(r"https?://[^\s/]+(/[^\s/]+)*")


@dataclass(frozen=True)
class _QueueForm:
    """How a platform's queue is written, and the longest lease that it grants at once."""

    pattern: re.Pattern[str]
    words: str
    most_lease_seconds: int


_FORMS = {
    Platform.GKE: _QueueForm(
        _PUBSUB, "a subscription such as projects/acme-ai-prod/subscriptions/prod.nlp.work, as the stack's output subscriptions has it", 600
    ),
    Platform.EKS: _QueueForm(
        _SQS,
        "a URL such as https://sqs.us-east-1.amazonaws.com/111122223333/prod_nlp_work, as the output work_queues has it",
        43_200,
    ),
    # A stand-in for SQS.
    Platform.LOCAL: _QueueForm(_ANY_SQS, "the URL of a queue of an SQS that runs on this machine", 43_200),
}


def queue_problems(place: Place, request: QueueWorkersRequest) -> list[SettingsProblem]:
    """An address that is none of the platform's, and a lease that ends while an interrupted worker still writes its result."""
    form, problems = _FORMS[place.plan.cloud], list[SettingsProblem]()
    if not form.pattern.fullmatch(request.queue):
        problems.append(SettingsProblem("queue", repr(request.queue), "is no queue that workers of this platform pull from", form.words))
    least = place.grace_seconds + LEASE_MARGIN_SECONDS
    if not least <= request.lease_seconds <= form.most_lease_seconds:
        problem = f"must outlast the {place.grace_seconds} s that an interrupted worker has by {LEASE_MARGIN_SECONDS}, and be had at once"
        remedy = f"{least} to {form.most_lease_seconds} are allowed; longer tasks live by extensions"
        problems.append(SettingsProblem("lease_seconds", str(request.lease_seconds), problem, remedy))
    return problems


def sqs_region(queue: str, otherwise: str) -> str:
    """The region in a queue's URL."""
    found = _SQS.fullmatch(queue)
    return found["region"] if found else otherwise
