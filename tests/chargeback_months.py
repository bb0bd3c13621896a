"""Small months as Prometheus returns them: series by question, from pods and nodes with their times."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from flexspot.capacity.chargeback.charging import charge
from flexspot.capacity.chargeback.ledger import Ledger
from flexspot.capacity.chargeback.node_costs import PriceTimes, cost_nodes
from flexspot.capacity.chargeback.queries import Question, label_of
from flexspot.capacity.chargeback.report import IdlePolicy, Report
from flexspot.capacity.chargeback.samples import Matrix, Period, Series

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexspot.capacity.catalog.price_book import PriceFile
    from flexspot.capacity.chargeback.gpu_use import Books

HOUR = 3600
STEP = 60


def at(hours: int, seconds: int = 0) -> str:
    """Return a moment of a month in a file's format."""
    return datetime.fromtimestamp(Month().period.start + hours * HOUR + seconds, UTC).isoformat()


class Month:
    """A builder of series. Times are seconds from the month's start. A pod or node is sampled at every step between its times."""

    def __init__(self, hours: int = 24, start: int = 1_790_812_800, name: str = "2026-10") -> None:
        self.period = Period(start, start + hours * HOUR, name, "UTC")
        self.series: dict[Question, list[tuple[dict[str, str], int, int, float]]] = {}

    def seen(self, question: Question, labels: dict[str, str], start: int, end: int, value: float = 1.0) -> None:
        self.series.setdefault(question, []).append((labels, start, end, value))

    def node(  # noqa: PLR0913 -- the properties of a node
        self,
        name: str,
        start: int,
        end: int,
        gpus: int = 8,
        *,
        machine: str = "p4d.24xlarge",
        bought: str = "spot",
        pool: str = "a100-spot",
        region: str = "us-east-1",
        resource: str = "nvidia_com_gpu",
        labels: dict[str, str] | None = None,
    ) -> None:
        """Add a node with the labels of Karpenter and `labels`. Empty labels are left out."""
        known = {
            "node.kubernetes.io/instance-type": machine,
            "topology.kubernetes.io/region": region,
            "karpenter.sh/capacity-type": bought,
            "karpenter.sh/nodepool": pool,
        } | (labels or {})
        self.seen(Question.NODES, {"node": name, "provider_id": f"aws:///{name}"}, start, end)
        self.seen(Question.NODE_LABELS, {"node": name} | {label_of(key): value for key, value in known.items() if value}, start, end)
        if gpus:
            self.seen(Question.NODE_GPUS, {"node": name, "resource": resource}, start, end, gpus)

    def pod(  # noqa: PLR0913 -- the properties of a pod
        self,
        name: str,
        node: str,
        start: int,
        end: int,
        *,
        gpus: int = 1,
        team: str = "vision",
        labels: dict[str, str] | None = None,
        **more: str,
    ) -> None:
        """Add a pod of a Job with the pod's name, or of another `controller` as Kind/name; "" for none. `labels` are added."""
        resource = more.pop("resource", "nvidia_com_gpu")
        kind, _, controller = more.pop("controller", f"Job/{name}").partition("/")
        uid = f"uid-{name}"
        self.seen(
            Question.ALLOCATIONS,
            {"uid": uid, "namespace": f"ns-{team}", "pod": name, "node": node, "resource": resource},
            start,
            end,
            gpus,
        )
        owners = {label_of(f"flexspot.dev/{key.replace('_', '-')}"): value for key, value in ({"team": team} | more).items() if value}
        self.seen(Question.POD_LABELS, {"uid": uid, **owners}, start, end)
        if kind:
            self.seen(Question.CONTROLLERS, {"uid": uid, "owner_kind": kind, "owner_name": controller}, start, end)
        if labels:
            self.seen(Question.WORK_LABELS, {"uid": uid, **{label_of(key): value for key, value in labels.items()}}, start, end)

    def answers(
        self, start: int, end: int, missing: Iterable[tuple[int, int]] = (), only: Question | None = None
    ) -> dict[Question, Matrix]:
        """Return Prometheus's answers for a slice, to all questions or one. `missing` are times without data."""
        origin = self.period.start
        moments = [each for each in range(start, end, STEP) if not any(a <= each - origin < b for a, b in missing)]
        found: dict[Question, Matrix] = {}
        for question, rows in self.series.items():
            if only not in {None, question}:
                continue
            matrix = found.setdefault(question, Matrix())
            for labels, first, last, value in rows:
                samples = [(moment, value) for moment in moments if first <= moment - origin < last]
                if samples:
                    matrix.series.append(Series(labels, samples))
        return found

    def books(self, slice_seconds: int = 6 * HOUR, missing: Iterable[tuple[int, int]] = (), cuts: Iterable[int] = ()) -> Books:
        ledger = Ledger(self.period, STEP, cuts=cuts)
        for start, end in self.period.slices(slice_seconds):
            ledger.take(self.answers(start, end, list(missing)))
        return ledger.close()

    def report(self, idle: IdlePolicy = IdlePolicy.CENTRAL, slice_seconds: int = 6 * HOUR, own: PriceFile | None = None) -> Report:
        """Return the report at the shipped prices, overridden by those of a user's file."""
        prices = PriceTimes(own=own, name="own")
        books = self.books(slice_seconds, cuts=prices.cuts(self.period))
        return charge(books, cost_nodes(books, prices), idle=idle, asked=self.period)
