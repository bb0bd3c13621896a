"""What Queues is told of flavors, cohorts and queues."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
from typing import NotRequired, TypedDict

from components.node_taint import NodeTaint


class FlavorArgs(TypedDict):
    """A flavor. `tolerations` are added to the pods that Kueue admits with it, `node_labels` become their node selector.

    Pods that do not tolerate `node_taints` by themselves are not admitted with it.
    """

    name: str
    """The flavor's name. One with a topology needs another name for other labels or tolerations: Kueue lets neither be changed."""

    node_labels: dict[str, str]
    """At most 8, one at least beside a topology."""

    node_taints: list[NodeTaint]
    """At most 8."""

    tolerations: list[dict[str, str]]
    """At most 8."""

    topology: NotRequired[str | None]
    """The Topology by which Kueue places pods, which must be there before. Default: None, the scheduler places them."""


class AmountArgs(TypedDict):
    """GPUs and what belongs to them; `cpu` and `memory` as Kubernetes quantities."""

    gpus: int
    cpu: str
    memory: str


class QuotaArgs(TypedDict):
    """What is somebody's own of a flavor, the most that it may borrow and the most that it lends. None: no limit."""

    flavor: str
    nominal: AmountArgs
    borrowing_limit: AmountArgs | None
    lending_limit: AmountArgs | None


class CohortArgs(TypedDict):
    """A group of queues, or of groups."""

    name: str
    """The cohort's name."""

    parent: str | None
    """The cohort in which it is; None for the root."""

    quotas: list[QuotaArgs]
    """What belongs to the group and to no queue of it."""

    weight: NotRequired[int]
    """Its part when idle GPUs are shared out with the other groups and queues of its parent. Default: 1."""


class AdmissionCheckArgs(TypedDict):
    """An AdmissionCheck that stands before `flavors` of a queue, and before none other. It must be there before the queue."""

    name: str
    flavors: list[str]


class QueueArgs(TypedDict):
    """The queues of one team, with `labels` besides those of every object.

    `namespace` must exist before the LocalQueue: hand its resource over in `depends_on`.
    """

    name: str
    """Name of the ClusterQueue."""

    cohort: str
    """The cohort in which it lends and borrows."""

    namespace: str
    """The one namespace that may submit."""

    local_queue: str
    """Name of the LocalQueue in it. `default` takes the namespace's unlabelled jobs."""

    labels: dict[str, str]
    """Labels of both queues."""

    quotas: list[QuotaArgs]
    """In the order in which flavors are tried; at least one."""

    weight: NotRequired[int]
    """The team's part when idle GPUs are shared out in its cohort. Default: 1."""

    moves_on: NotRequired[bool]
    """Whether work that could have a flavor only by preempting others looks for room in the next flavor first. Default: true."""

    stop: NotRequired[str]
    """`none`; `hold`: what runs goes on, nothing new starts; `drain`: what runs is stopped too. Default: none."""

    admission_checks: NotRequired[list[AdmissionCheckArgs]]
    """What besides quota must be ready before work starts on some flavors. Default: none."""


class QueuesArgs(TypedDict):
    """Arguments of Queues."""

    cohorts: list[CohortArgs]
    """The tree in which the teams lend and borrow what they do not use."""

    flavors: list[FlavorArgs]
    """Every flavor that a quota names."""

    queues: list[QueueArgs]
    """One a team; at least one quota each."""

    labels: dict[str, str]
    """Labels of every object."""
