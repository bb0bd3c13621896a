"""A worst-case month with its charges, calculated minute by minute and independently of the product.

Clocks change in it. Nodes disappear and their names are given to other machines. Pods are seen for longer than their nodes. Samples are
missing, duplicated or not numbers, and half an hour was not recorded. Labels are missing. Only a part of what is reserved ever exists.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

from flexspot.capacity.chargeback.queries import Question, label_of
from flexspot.capacity.chargeback.samples import month_period, read_matrix

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.chargeback.samples import Matrix

MINUTE, HOUR = 60, 3600
GPUS = 8
TEAMS = ("vision", "speech", "search", "ads", "")
NO_TEAM = "(no team)"

Line = tuple[str, str, str]
"""Team, capacity type and pool."""

NO_USER = "(no user)"
Consumer = tuple[str, str, str]
"""Team, workload and user."""


@dataclass(frozen=True)
class Kind:
    """A kind of node."""

    machine: str
    capacity_type: str
    pool: str
    usd: str | None
    """Cost per hour; None if unknown."""
    on_demand: str = ""
    """On-demand price of its machine."""
    labelled: bool = True
    """False for a node with labels for its machine and region only."""
    owner: str = ""


SPOT = Kind("p4d.24xlarge", "spot", "a100-spot", "7.00", "19.00", owner="vision")
ON_DEMAND = Kind("p4d.24xlarge", "on-demand", "a100-on-demand", "19.00", "19.00")
RESERVED = Kind("p5.48xlarge", "reserved", "h100", "41.13", "55.04", owner="research")
UNPRICED = Kind("p9.48xlarge", "spot", "next", None)
BARE = Kind("p4d.24xlarge", "spot", "a100-spot", None, labelled=False)
KINDS = (SPOT, SPOT, SPOT, ON_DEMAND, RESERVED, UNPRICED, BARE)
COMMITTED = 6

CONTRACT: dict[str, Any] = {
    "cloud": "aws",
    "sources": {"contract": {"citation": "the contract of May", "as_of": "2026-01-01", "verified": True}},
    "prices": [
        {
            "machine": each.machine,
            "region": "us-east-1",
            "capacity_type": each.capacity_type,
            "usd_per_hour": each.usd,
            "source": "contract",
        }
        for each in (SPOT, ON_DEMAND, RESERVED, Kind("p5.48xlarge", "on-demand", "", "55.04"))
    ],
    "commitments": [
        {
            "machine": RESERVED.machine,
            "region": "us-east-1",
            "nodes": COMMITTED,
            "pool": RESERVED.pool,
            "start": "2026-01-01",
            "end": "2027-01-01",
            "source": "contract",
        }
    ],
}


@dataclass(frozen=True)
class HostileNode:
    """A node. Another may have had its name before."""

    name: str
    kind: Kind
    start: int
    """First minute of the month."""
    end: int
    """Minute after the last."""


@dataclass(frozen=True)
class HostilePod:
    """A pod on a node."""

    name: str
    node: HostileNode
    team: str
    gpus: int
    start: int
    """First minute of the month."""
    end: int
    """Minute after the last, which can be after the node's last."""

    @property
    def number(self) -> int:
        """Seed for everything that changes no GPU use."""
        return int(self.name.removeprefix("job-"))

    @property
    def controller(self) -> tuple[str, str]:
        """Kind and name of its controller; empty if it has none."""
        names = {
            0: ("Job", f"set-{self.number % 50}-workers-0"),
            1: ("ReplicaSet", f"serve-{self.number % 7}-6c9f"),
            2: ("Job", self.name),
            4: ("StatefulSet", f"leaders-{self.number % 5}-1"),
            5: ("RayCluster", f"ray-{self.number % 9}"),
        }
        return names.get(self.number % 6, ("", ""))

    @property
    def labels(self) -> dict[str, str]:
        """Labels from its controllers, and for its team."""
        written = {
            0: {"jobset.sigs.k8s.io/jobset-name": f"set-{self.number % 50}"},
            1: {"pod-template-hash": "6c9f"},
            # Labels may be wrong: the controller of these pods is of another kind.
            2: {"leaderworkerset.sigs.k8s.io/name": "somebody-elses", "pod-template-hash": "6c9f"},
            4: {"leaderworkerset.sigs.k8s.io/name": f"leaders-{self.number % 5}"},
        }.get(self.number % 6, {})
        return written if self.number % 4 == 0 else written | {"flexspot.dev/user": f"user-{self.number % 13}"}

    @property
    def consumer(self) -> Consumer:
        """The work as submitted, with its team and user."""
        of = (
            f"JobSet ns-{self.team}/set-{self.number % 50}",
            f"Deployment ns-{self.team}/serve-{self.number % 7}",
            f"Job ns-{self.team}/{self.name}",
            f"Pod ns-{self.team}/{self.name}",
            f"LeaderWorkerSet ns-{self.team}/leaders-{self.number % 5}",
            f"RayCluster ns-{self.team}/ray-{self.number % 9}",
        )[self.number % 6]
        return self.team or NO_TEAM, of, NO_USER if self.number % 4 == 0 else f"user-{self.number % 13}"


@dataclass
class HostileMonth:
    """All nodes and pods, in minutes of the month."""

    minutes: int
    start: int
    outage: int
    """First of thirty minutes that were not recorded."""
    nodes: list[HostileNode] = field(default_factory=list[HostileNode])
    pods: list[HostilePod] = field(default_factory=list[HostilePod])

    @property
    def unseen(self) -> range:
        """Minutes without data."""
        return range(self.outage, self.outage + 30)


def hostile_month(pods: int, seed: int = 1) -> HostileMonth:
    """Return March 2026 in Berlin, an hour shorter than its 31 days, with about this many pods."""
    chance = random.Random(seed)  # noqa: S311 -- no secret
    period = month_period("2026-03", "Europe/Berlin")
    month = HostileMonth(period.seconds // MINUTE, period.start, outage=chance.randrange(20_000, 30_000))
    while len(month.pods) < pods:
        number = len(month.nodes)
        kind = chance.choice(KINDS)
        start = chance.randrange(-600, month.minutes - 60)
        end = min(start + chance.randrange(30, 3000), month.minutes + 500)
        name = f"ip-10-0-{number // 3}"
        if any(each.name == name and each.start < end + 30 and start < each.end + 30 for each in month.nodes[-3:]):
            name = f"ip-10-1-{number}"
        if kind is RESERVED and _at_most_at_once(month.nodes, start, end) >= COMMITTED:
            continue
        node = HostileNode(name, kind, start, end)
        month.nodes.append(node)
        _fill(chance, month, node)
    return month


def _at_most_at_once(nodes: list[HostileNode], start: int, end: int) -> int:
    reserved = [each for each in nodes if each.kind is RESERVED and each.start < end and start < each.end]
    return max((sum(each.start <= moment.start < each.end for each in reserved) for moment in reserved), default=0)


def _fill(chance: random.Random, month: HostileMonth, node: HostileNode) -> None:
    """Assign the node's GPUs to pods, in order and never more than it has. Some pods are seen for minutes longer than the node."""
    free = [node.start] * GPUS
    for _ in range(chance.randrange(0, 30)):
        gpus = chance.choice((1, 1, 2, 4, 8))
        free.sort()
        start = free[gpus - 1] + chance.randrange(0, 90)
        end = start + chance.randrange(1, 240)
        if end > node.end:
            end = node.end + chance.choice((0, 0, 1, 4))
        if start >= node.end:
            continue
        free[:gpus] = [end + 1] * gpus
        month.pods.append(HostilePod(f"job-{len(month.pods)}", node, chance.choice(TEAMS), gpus, start, end))


def answers(month: HostileMonth, slice_minutes: int, seed: int = 2) -> Iterator[dict[Question, Matrix]]:
    """Yield Prometheus's answers, slice by slice."""
    chance = random.Random(seed)  # noqa: S311 -- no secret
    lost = {each: _lost(chance, month, each) for each in (*month.nodes, *month.pods)}
    twice = {each: chance.random() < 0.5 for each in (*month.nodes, *month.pods)}
    for first in range(0, month.minutes, slice_minutes):
        series = _Series(month.start)
        for each in (*month.nodes, *month.pods):
            there = range(max(each.start, first), min(each.end, first + slice_minutes, month.minutes))
            series.moments = [moment for moment in there if moment not in month.unseen and moment not in lost[each]]
            if series.moments and isinstance(each, HostileNode):
                series.node(each, twice=twice[each])
            elif series.moments and isinstance(each, HostilePod):
                series.pod(each, twice=twice[each], nothing=chance.random() < 0.05)
        yield {question: read_matrix(rows) for question, rows in series.rows.items()}


def _lost(chance: random.Random, month: HostileMonth, each: HostileNode | HostilePod) -> range:
    """Return up to five consecutive missing samples. The first and last of all are kept, as they determine the start and end."""
    if each.end - each.start < 60 or chance.random() < 0.5:
        return range(0)
    at = chance.randrange(each.start + 10, each.end - 10)
    missing = range(at, at + chance.randrange(1, 6))
    within = at - 10 > 0 and missing.stop + 10 < month.minutes
    return missing if within and (missing.stop + 10 < month.outage or at > month.unseen.stop + 10) else range(0)


class _Series:
    """The series of a slice. Calls add samples at `moments`."""

    def __init__(self, start: int) -> None:
        self._start = start
        self.moments: list[int] = []
        self.rows: dict[Question, list[dict[str, Any]]] = {question: [] for question in Question}

    def _add(self, question: Question, labels: dict[str, str], value: str = "1") -> None:
        self.rows[question].append({"metric": labels, "values": [[self._start + each * MINUTE, value] for each in self.moments]})

    def node(self, node: HostileNode, *, twice: bool) -> None:
        """Add a node. `twice`: a second job scrapes the same exporter without honor_labels, and reports the same with another "node"."""
        labels = {"node.kubernetes.io/instance-type": node.kind.machine, "topology.kubernetes.io/region": "us-east-1"}
        if node.kind.labelled:
            labels |= {"karpenter.sh/capacity-type": node.kind.capacity_type, "karpenter.sh/nodepool": node.kind.pool}
        if node.kind.owner:
            labels["flexspot.dev/team"] = node.kind.owner
        for names in ({"node": node.name}, {"exported_node": node.name, "node": "monitoring"})[: 1 + twice]:
            self._add(Question.NODES, {**names, "provider_id": f"aws:///{node.name}-{node.start}"})
            self._add(Question.NODE_LABELS, {**names, **{label_of(key): each for key, each in labels.items()}})
            self._add(Question.NODE_GPUS, {**names, "resource": "nvidia_com_gpu"}, str(GPUS))

    def pod(self, pod: HostilePod, *, twice: bool, nothing: bool) -> None:
        """Add a pod. `nothing`: its utilization is not a number."""
        uid, namespace = {"uid": f"uid-{pod.name}"}, f"ns-{pod.team}"
        of_pod = {"namespace": namespace, "pod": pod.name, "node": pod.node.name}
        aside = {f"exported_{key}": each for key, each in of_pod.items()} | {"namespace": "monitoring", "pod": "exporter"}
        for labels in (of_pod, aside)[: 1 + twice]:
            self._add(Question.ALLOCATIONS, {**uid, **labels, "resource": "nvidia_com_gpu"}, str(pod.gpus))
        if pod.team:
            self._add(Question.POD_LABELS, {**uid, label_of("flexspot.dev/team"): pod.team})
        kind, controller = pod.controller
        if kind:
            self._add(Question.CONTROLLERS, {**uid, "owner_kind": kind, "owner_name": controller})
        if pod.labels:
            self._add(Question.WORK_LABELS, {**uid, **{label_of(key): each for key, each in pod.labels.items()}})
        if twice:
            # The second exporter shows no labels.
            self._add(Question.WORK_LABELS, uid)
        if nothing:
            self._add(Question.UTILISATION, of_pod, "NaN")


@dataclass
class WorkedOut:
    """The charges of a month, in US dollars."""

    allocated: defaultdict[Line, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    """Cost of GPUs in use."""
    saved: defaultdict[Line, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    """Savings against on-demand."""
    idle: defaultdict[Kind, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    """Cost of idle GPUs."""
    gpu_minutes: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    """GPU minutes by team."""
    work: defaultdict[Consumer, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    work_minutes: defaultdict[Consumer, int] = field(default_factory=lambda: defaultdict(int))
    unpriced_minutes: int = 0
    """Minutes of nodes with an unknown price."""

    @property
    def total(self) -> Decimal:
        """Total cost of the month."""
        return sum(self.allocated.values(), Decimal(0)) + sum(self.idle.values(), Decimal(0))


def worked_out(month: HostileMonth) -> WorkedOut:
    """Return the charges, minute by minute: each existing node costs a sixtieth of its hourly price, divided among its GPUs."""
    found = WorkedOut()
    by_node: defaultdict[HostileNode, list[HostilePod]] = defaultdict(list)
    for pod in month.pods:
        by_node[pod.node].append(pod)
    there = [0] * month.minutes
    with localcontext(prec=60):
        for node in month.nodes:
            minutes = [each for each in range(max(0, node.start), min(node.end, month.minutes)) if each not in month.unseen]
            if node.kind is RESERVED:
                for each in minutes:
                    there[each] += 1
            _work_out(found, node, minutes, by_node[node])
        usd_per_minute = Decimal(RESERVED.usd or 0) / 60
        found.idle[RESERVED] += usd_per_minute * sum(COMMITTED - each for each in there)
    return found


def _work_out(found: WorkedOut, node: HostileNode, minutes: list[int], pods: list[HostilePod]) -> None:
    if node.kind.usd is None:
        found.unpriced_minutes += len(minutes)
    usd_per_minute = Decimal(node.kind.usd or 0) / 60
    left = GPUS * len(minutes)
    for pod in pods:
        had = pod.gpus * (bisect_left(minutes, pod.end) - bisect_left(minutes, pod.start))
        left -= had
        found.gpu_minutes[pod.team or NO_TEAM] += had
        found.work_minutes[pod.consumer] += had
        if node.kind.usd is not None:
            line = (pod.team or NO_TEAM, node.kind.capacity_type, node.kind.pool)
            found.allocated[line] += usd_per_minute * had / GPUS
            found.work[pod.consumer] += usd_per_minute * had / GPUS
            found.saved[line] += (Decimal(node.kind.on_demand) / 60 - usd_per_minute) * had / GPUS
    if node.kind.usd is not None:
        found.idle[node.kind] += usd_per_minute * left / GPUS
