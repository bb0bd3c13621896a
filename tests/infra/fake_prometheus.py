"""A Prometheus in this process for range queries. It answers from a Month, and misbehaves on demand."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import loopback_server
from typer.testing import CliRunner

from flexspot.capacity.chargeback.queries import queries
from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.cli.app import app

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Generator
    from pathlib import Path

    from chargeback_months import Month

Reply = tuple[int, str, bytes]
"""Status, content type, body."""


def as_json(body: Any, status: int = 200) -> Reply:
    return status, "application/json", json.dumps(body).encode()


def refused(status: int, kind: str, error: str) -> Reply:
    """Return an error in the form of Prometheus' web/api/v1/api.go."""
    return as_json({"status": "error", "errorType": kind, "error": error}, status)


class FakePrometheus:
    """A fake server. `misbehave` receives each request's number and fields and returns the reply, or None for the correct one."""

    def __init__(self, month: Month, match: str = "") -> None:
        self.month = month
        self.asked: list[dict[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.misbehave: Callable[[int, dict[str, str]], Reply | None] = lambda _number, _fields: None
        self.url = ""
        self._questions = {each.expression: each.question for each in queries(match)}

    def reply(self, fields: dict[str, str], headers: dict[str, str]) -> Reply:
        self.asked.append(fields)
        self.headers.append(headers)
        bad = self.misbehave(len(self.asked), fields)
        return self.right(fields) if bad is None else bad

    def right(self, fields: dict[str, str], **more: Any) -> Reply:
        start, end, step = int(fields["start"]), int(fields["end"]), int(fields["step"])
        if (end - start) // step + 1 > 11_000:
            return refused(
                400, "bad_data", "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution"
            )
        question = self._questions[fields["query"]]
        matrix = self.month.answers(start, end + 1, only=question).get(question)
        series = [] if matrix is None else matrix.series
        result = [{"metric": each.labels, "values": [[moment, f"{value:g}"] for moment, value in each.samples]} for each in series]
        return as_json({"status": "success", "data": {"resultType": "matrix", "result": result}, **more})

    @property
    def slices(self) -> set[tuple[int, int]]:
        return {(int(each["start"]), int(each["end"])) for each in self.asked}


@contextmanager
def served(fake: FakePrometheus, tls: ssl.SSLContext | None = None) -> Generator[FakePrometheus]:
    """Serve it on a loopback port, with `tls` over TLS. `url` is its address."""

    def reply(asked: loopback_server.Request) -> loopback_server.Reply:
        fields = {key: values[0] for key, values in parse_qs(asked.body).items()}
        status, kind, content = fake.reply(fields, dict(asked.headers))
        moved = {"Location": "http://elsewhere.test/"} if 300 <= status < 400 else {}
        return loopback_server.Reply(status, content, kind, moved)

    with loopback_server.serving(reply, tls) as fake.url:
        yield fake


def reported(fake: FakePrometheus, *arguments: str | Path, code: int | None = 0) -> str:
    """Return the output or the error of `flexspot chargeback`. `code` is the required exit code, None for any."""
    result = CliRunner().invoke(app, ["chargeback", "report", "--prometheus", fake.url, *map(str, arguments)], env={"COLUMNS": "160"})
    explained = result.exception if isinstance(result.exception, ExplainedError) else None
    ended = result.exit_code if explained is None else explained.exit_code
    assert code in {None, ended}, result.output
    return result.stdout if explained is None else str(explained)
