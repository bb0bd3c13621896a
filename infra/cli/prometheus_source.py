"""A period read from Prometheus for a command: with progress, answers kept until the command is done, and what the server warned of."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import platformdirs

from capacity.values.errors import ExplainedError
from infra.cli.console import ConsoleProgress
from infra.prometheus.client import PrometheusClient
from infra.prometheus.reading import KeptSlices, Reading, ReportIdentity, collection_paused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from capacity.chargeback.queries import Query, Question
    from capacity.chargeback.samples import Matrix, Period
    from infra.prometheus.access import Access


@dataclass(frozen=True)
class ReadPeriod:
    """What came with the samples of a period. `discard` removes the kept answers, unless the person said where to keep them."""

    warnings: list[str]
    discard: Callable[[], None]


@dataclass(frozen=True)
class PrometheusSource:
    """Where samples are read, and how: what the command line says of it."""

    access: Access
    match: str
    step: int
    bridge: int
    timeout: float
    resume_dir: Path | None
    now: int

    def read(
        self, period: Period, queries: tuple[Query, ...], take: Callable[[Mapping[Question, Matrix]], None], *, kept_as: str
    ) -> ReadPeriod:
        """Hands over the answers slice by slice. `kept_as` is the folder of the user's cache. Raises ExplainedError."""
        access, step_name = self.access, "samples"
        tenant = tuple(
            f"{name}={hashlib.sha256(value.encode()).hexdigest()[:12]}"
            for name, value in sorted(access.headers.items())
            if name.lower() != "authorization"
        )
        identity = ReportIdentity(access.url, self.match, self.step, tenant)
        cache = platformdirs.user_cache_path("flexspot") / kept_as / f"{identity.fingerprint[:16]}-{period.start}"
        kept = KeptSlices(self.resume_dir or cache, identity)
        progress = ConsoleProgress()

        def told(done: int, total: int) -> None:
            progress.advance(step_name, f"reading {period.name} from {access.url}", done, total)

        reading = Reading(PrometheusClient(access, read_seconds=self.timeout), kept, self.step, self.now, told)
        progress.begin(step_name, f"reading {period.name} from {access.url}")
        try:
            with collection_paused():
                for answers in reading.slices(period, queries):
                    take(answers)
            again = f", {reading.from_disk} answers from an earlier run" if reading.from_disk else ""
            progress.end(step_name, f"read {period.name}{again}")
        finally:
            progress.close()
        warned = [f"Prometheus warned, and data may be missing: {each}" for each in reading.warnings]
        return ReadPeriod(warned, kept.discard if self.resume_dir is None else lambda: None)


def no_node_known(period: Period) -> ExplainedError:
    """The error for a period in which no node was seen."""
    return ExplainedError(
        f"Prometheus knows of no node in {period.name}.",
        "check that it scrapes kube-state-metrics (kube_node_info), keeps data for so long, and that --match is right.",
    )
