"""A period read in slices. Each slice is requested once, halved if it is too large, and stored on disk."""

from __future__ import annotations

import gc
import gzip
import hashlib
import json
import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.prometheus.client import QueryResult, TooLargeError, read_reply
from flexspot.infra.prometheus.signers import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping
    from pathlib import Path

    from flexspot.capacity.chargeback.queries import Query, Question
    from flexspot.capacity.chargeback.samples import Matrix, Period
    from flexspot.infra.prometheus.client import PrometheusClient


_MANIFEST = "manifest.json"
_VERSION = 2


@dataclass(frozen=True)
class ReportIdentity:
    """Identity of a folder's answers: another server, step or selection would have others. Contains no secrets."""

    url: str
    match: str
    step: int
    headers: tuple[str, ...] = ()
    """Names of headers with a hash of their values, since a header may select a tenant."""

    @property
    def fingerprint(self) -> str:
        """A hash that is equal for equal queries."""
        return hashlib.sha256(repr((_VERSION, self.url, self.match, self.step, self.headers)).encode()).hexdigest()


class KeptSlices:
    """A folder of stored answers. A file that differs from its hash in the manifest is requested again."""

    def __init__(self, folder: Path, identity: ReportIdentity) -> None:
        self._folder = folder
        self._fingerprint = identity.fingerprint
        self._hashes: dict[str, str] = self._read_manifest()

    def find(self, query: Query, start: int, end: int) -> QueryResult | None:
        """Return the stored answer, or None if it is missing or damaged."""
        name = _name(query, start, end)
        try:
            content = (self._folder / name).read_bytes()
        except OSError:
            return None
        if hashlib.sha256(content).hexdigest() != self._hashes.get(name):
            return None
        return read_reply(Reply(200, "application/json", gzip.decompress(content)))

    def keep(self, query: Query, start: int, end: int, answer: QueryResult) -> None:
        """Write the answer, then its hash into the manifest. Raises ExplainedError if the folder cannot be written."""
        name = _name(query, start, end)
        # A single reply is stored as received: serializing it would take as long as reading it.
        content = gzip.compress(_as_reply(answer) if answer.body is None else answer.body, compresslevel=1, mtime=0)
        self._hashes[name] = hashlib.sha256(content).hexdigest()
        self._write(name, content)
        manifest = {"fingerprint": self._fingerprint, "files": self._hashes}
        self._write(_MANIFEST, json.dumps(manifest, indent=1).encode())

    def discard(self) -> None:
        """Remove the folder after the report is done."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, name: str, content: bytes) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            half = self._folder / f".{name}.{os.getpid()}"
            half.write_bytes(content)
            half.replace(self._folder / name)
        except OSError as error:
            raise ExplainedError(
                f"--resume-dir: answers cannot be written to {self._folder}: {error.strerror or error}.",
                "free some space, or name another folder with --resume-dir.",
            ) from error

    def _read_manifest(self) -> dict[str, str]:
        path = self._folder / _MANIFEST
        try:
            manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            fingerprint, hashes = manifest["fingerprint"], dict(manifest["files"])
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError):
            # Prometheus still has the answers: request them again.
            return {}
        if fingerprint != self._fingerprint:
            raise ExplainedError(
                f"--resume-dir: {self._folder} contains answers for another server, step, selection or header.",
                "name another folder, or remove this one.",
                exit_code=ExitCode.BAD_USAGE,
            )
        return hashes


def _as_reply(answer: QueryResult) -> bytes:
    """Return the answer in the form of a Prometheus reply."""
    data = {"resultType": "matrix", "result": answer.result}
    return json.dumps({"status": "success", "data": data, "warnings": answer.warnings}).encode()


def _name(query: Query, start: int, end: int) -> str:
    digest = hashlib.sha256(query.expression.encode()).hexdigest()[:8]
    return f"{query.question}-{digest}-{start}-{end}.json.gz"


@contextmanager
def collection_paused() -> Generator[None]:
    """Pause the collection of cyclic garbage, then restore the earlier state.

    A day of samples is millions of small lists without cycles, which reference counting frees. While they are created, Python would scan
    all of them repeatedly: decoding took three times as long.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


POINTS_AT_MOST = 11_000
"""Most points of a series in a range query. Prometheus refuses more (web/api/v1/api.go), and no option changes that."""

_DAY = 86_400
_SETTLES_SECONDS = 600
"""Answers about more recent times are not stored: samples may still arrive by remote write or a late scrape."""


@dataclass
class PeriodReader:
    """Reads a period."""

    client: PrometheusClient
    kept: KeptSlices
    step: int
    """Seconds between samples."""
    now: int
    """Current time. Slices that end shortly before it are not stored."""
    report: Callable[[int, int], None] = field(default=lambda _done, _all: None)
    """Receives the number of finished slices and of all slices."""
    warnings: dict[str, None] = field(default_factory=dict[str, None])
    """The server's warnings, each once."""
    from_disk: int = 0
    """Number of answers that were read from disk."""

    def slices(self, period: Period, queries: tuple[Query, ...]) -> Iterator[Mapping[Question, Matrix]]:
        """Yield the answers to all queries, slice by slice, with only one slice in memory. Raises ExplainedError."""
        pieces = list(period.slices(slice_seconds(self.step)))
        for number, (start, end) in enumerate(pieces):
            self.report(number, len(pieces))
            yield {query.question: self._read(query, start, end) for query in queries}
        self.report(len(pieces), len(pieces))

    def _read(self, query: Query, start: int, end: int) -> Matrix:
        answer = self.kept.find(query, start, end)
        if answer is not None:
            self.from_disk += 1
        else:
            answer = self._ask(query, start, end)
            if end <= self.now - _SETTLES_SECONDS:
                self.kept.keep(query, start, end, answer)
        self.warnings |= dict.fromkeys(answer.warnings)
        return answer.matrix

    def _ask(self, query: Query, start: int, end: int) -> QueryResult:
        try:
            return self.client.query_range(query, start, end, self.step)
        except TooLargeError as error:
            half = (end - start) // self.step // 2 * self.step
            if half == 0:
                raise ExplainedError(
                    f"--match: {query.question} at a single moment returns more than Prometheus or this command allows.",
                    "select one cluster with --match, or raise Prometheus' --query.max-samples.",
                    evidence=(str(error),),
                ) from error
        first, second = self._ask(query, start, start + half), self._ask(query, start + half, end)
        return QueryResult([*first.result, *second.result], (*first.warnings, *second.warnings))


def slice_seconds(step: int) -> int:
    """Return the length of a slice in whole steps: a day, or less if the limit of points requires it."""
    return min(max(1, _DAY // step), POINTS_AT_MOST - 1) * step
