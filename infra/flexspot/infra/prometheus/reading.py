"""A period read in slices: each asked once, halved where it is too large, kept on disk, and handed over before the next is asked."""

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
    """What a folder's answers are answers to: another server, step or selection would give others. It holds nothing secret."""

    url: str
    match: str
    step: int
    headers: tuple[str, ...] = ()
    """Names of headers, with a hash of their values: a tenant is chosen by a header."""

    @property
    def fingerprint(self) -> str:
        """The same for the same questions."""
        return hashlib.sha256(repr((_VERSION, self.url, self.match, self.step, self.headers)).encode()).hexdigest()


class KeptSlices:
    """A folder of answers. What its manifest does not vouch for, a half-written or changed file, is not read but asked for again."""

    def __init__(self, folder: Path, identity: ReportIdentity) -> None:
        self._folder = folder
        self._fingerprint = identity.fingerprint
        self._hashes: dict[str, str] = self._read_manifest()

    def find(self, query: Query, start: int, end: int) -> QueryResult | None:
        """The answer, if it is here and whole."""
        name = _name(query, start, end)
        try:
            content = (self._folder / name).read_bytes()
        except OSError:
            return None
        if hashlib.sha256(content).hexdigest() != self._hashes.get(name):
            return None
        return read_reply(Reply(200, "application/json", gzip.decompress(content)))

    def keep(self, query: Query, start: int, end: int, answer: QueryResult) -> None:
        """Writes the answer, then vouches for it. Raises ExplainedError where the folder cannot be written."""
        name = _name(query, start, end)
        # As it came where it came in one piece: writing it anew would take as long as reading it.
        content = gzip.compress(_as_reply(answer) if answer.body is None else answer.body, compresslevel=1, mtime=0)
        self._hashes[name] = hashlib.sha256(content).hexdigest()
        self._write(name, content)
        manifest = {"fingerprint": self._fingerprint, "files": self._hashes}
        self._write(_MANIFEST, json.dumps(manifest, indent=1).encode())

    def discard(self) -> None:
        """Removes the folder; the report is done."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, name: str, content: bytes) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            half = self._folder / f".{name}.{os.getpid()}"
            half.write_bytes(content)
            half.replace(self._folder / name)
        except OSError as error:
            raise ExplainedError(
                f"answers cannot be kept in {self._folder}: {error.strerror or error}.",
                "make room, or name another folder with --resume-dir.",
            ) from error

    def _read_manifest(self) -> dict[str, str]:
        path = self._folder / _MANIFEST
        try:
            manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            fingerprint, hashes = manifest["fingerprint"], dict(manifest["files"])
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError):
            # Not worth more than asking again: the answers are Prometheus', and it still has them.
            return {}
        if fingerprint != self._fingerprint:
            raise ExplainedError(
                f"{self._folder} holds answers to other questions: of another server, step, selection or header.",
                "name another folder with --resume-dir, or remove this one.",
                exit_code=ExitCode.BAD_USAGE,
            )
        return hashes


def _as_reply(answer: QueryResult) -> bytes:
    """In the form of Prometheus' own replies."""
    data = {"resultType": "matrix", "result": answer.result}
    return json.dumps({"status": "success", "data": data, "warnings": answer.warnings}).encode()


def _name(query: Query, start: int, end: int) -> str:
    asked = hashlib.sha256(query.expression.encode()).hexdigest()[:8]
    return f"{query.question}-{asked}-{start}-{end}.json.gz"


@contextmanager
def collection_paused() -> Generator[None]:
    """Pauses the search for cyclic garbage, as it was before afterwards.

    A day of samples is millions of small lists in no cycle, which are freed when nobody refers to them. While they are made Python would
    look through all of them over and over: decoding took three times as long.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


POINTS_AT_MOST = 11_000
"""Prometheus refuses a range query of more points in a series (web/api/v1/api.go); no option changes that."""

_DAY = 86_400
_SETTLES_SECONDS = 600
"""A moment so near to now may still get samples, by remote write or a late scrape: an answer of it is not kept."""


@dataclass
class PeriodReader:
    """Reads a period. `warnings` are the server's, each once; `now` decides what may be kept."""

    client: PrometheusClient
    kept: KeptSlices
    step: int
    now: int
    told: Callable[[int, int], None] = field(default=lambda _done, _all: None)
    warnings: dict[str, None] = field(default_factory=dict[str, None])
    from_disk: int = 0

    def slices(self, period: Period, queries: tuple[Query, ...]) -> Iterator[Mapping[Question, Matrix]]:
        """The answers to all queries, slice by slice; only one slice is in memory. Raises ExplainedError."""
        pieces = list(period.slices(slice_seconds(self.step)))
        for number, (start, end) in enumerate(pieces):
            self.told(number, len(pieces))
            yield {query.question: self._read(query, start, end) for query in queries}
        self.told(len(pieces), len(pieces))

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
                    f"even one moment of {query.question} is more than Prometheus or this command takes at once.",
                    "select one cluster with --match, or raise Prometheus' --query.max-samples.",
                    evidence=(str(error),),
                ) from error
        first, second = self._ask(query, start, start + half), self._ask(query, start + half, end)
        return QueryResult([*first.result, *second.result], (*first.warnings, *second.warnings))


def slice_seconds(step: int) -> int:
    """A day, or what fits into the limit of points, in whole steps."""
    return min(max(1, _DAY // step), POINTS_AT_MOST - 1) * step
