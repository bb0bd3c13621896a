"""Which queue work may name: one of its namespace, whose machines are those that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.accelerators import RESOURCES
from capacity.catalog.work_labels import QUEUE_LABEL
from policies.admission.boundary import IS_QUEUED_KIND, Boundary, Guarantee, of_namespace, problem_if
from policies.admission.cel import either, every, first_of, let, text
from policies.admission.form import POD_SETS, told
from policies.admission.pods import ASKS

if TYPE_CHECKING:
    from collections.abc import Iterator

_ASKS_FOR_GPUS = f"{POD_SETS}.exists(p, {ASKS})"
_NAMED = first_of(("variables.queue == ''", text("not there")), otherwise="variables.queue")
_NONE = "there is none; ask who runs the platform"


def _joined(queues: str) -> str:
    return let("own", queues, first_of(("size(own) == 0", text(_NONE)), otherwise="own.join(', ')"))


def queues_of_work(guarantee: Guarantee) -> Iterator[Boundary]:
    """The two rules: that there is such a queue, and that it is for work of this sort.

    A set of jobs with GPUs in some of its pods alone is work with GPUs: its others get machines without any by the queue's first flavor.
    """
    with_gpus, without = of_namespace(guarantee.queues), of_namespace(guarantee.cpu_queues)
    suitable = f"({_ASKS_FOR_GPUS} ? {with_gpus} : {without})"
    known = either(f"variables.queue in {with_gpus}", f"variables.queue in {without}")
    yield Boundary(
        "work-past-the-queue",
        "work that asks for GPUs names a queue of its namespace",
        problem_if(
            every(
                IS_QUEUED_KIND,
                either(f"variables.queue != '' && !({known})", f"variables.queue == '' && {_ASKS_FOR_GPUS}"),
            ),
            told(
                f"label {QUEUE_LABEL} is {{name}}, which is no queue of this namespace: it would run past the queues, or wait for ever",
                "name one of these: {queues}",
                name=_NAMED,
                queues=_joined(suitable),
            ),
        ),
    )
    yield Boundary(
        "work-in-the-wrong-queue",
        "work without GPUs is in a queue of machines without GPUs, and no other work is",
        problem_if(
            every(IS_QUEUED_KIND, _ASKS_FOR_GPUS, f"variables.queue in {without}"),
            told(
                f"label {QUEUE_LABEL} is {{name}}, whose machines have no GPUs: it would wait for ever",
                f"write {QUEUE_LABEL}: {{queues}}",
                name=_NAMED,
                queues=_joined(with_gpus),
            ),
        )
        + " + "
        + problem_if(
            every(
                IS_QUEUED_KIND,
                f"!({_ASKS_FOR_GPUS})",
                either(f"variables.queue in {with_gpus}", f"variables.queue == '' && size({without}) > 0"),
            ),
            told(
                f"no container has a limit on {' or '.join(RESOURCES)}, and label {QUEUE_LABEL} is {{name}}, which is for work with GPUs",
                f"write {QUEUE_LABEL}: {{queues}}",
                name=_NAMED,
                queues=_joined(without),
            ),
        ),
    )
