"""Reading Prometheus in slices, with retries, from disk after an interruption, and without printing secrets."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from chargeback_months import HOUR, Month
from fake_prometheus import FakePrometheus, Reply, as_json, refused, served
from loopback_certificate import certificate
from loopback_server import Reply as HttpReply
from loopback_server import serving

from flexspot.capacity.chargeback.ledger import Ledger
from flexspot.capacity.chargeback.queries import Question, queries
from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.prometheus.access import access_to
from flexspot.infra.prometheus.client import PrometheusClient
from flexspot.infra.prometheus.reading import KeptSlices, PeriodReader, ReportIdentity

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

SECRET = "s3cr3t-t0ken"  # noqa: S105 -- a made-up value

NODES = queries()[0]


@pytest.fixture
def fake() -> Iterator[FakePrometheus]:
    month = Month(hours=30)
    month.node("n1", 0, 30 * HOUR)
    month.pod("train", "n1", HOUR, 29 * HOUR, gpus=4)
    with served(FakePrometheus(month)) as found:
        yield found


def reading(fake: FakePrometheus, folder: Path, *, step: int = 60, largest_reply: int = 10**8, now: int = 10**10) -> PeriodReader:
    client = PrometheusClient(
        access_to(fake.url, headers=[f"Authorization: Bearer {SECRET}"]), largest_reply=largest_reply, wait=lambda _: None
    )
    return PeriodReader(client, KeptSlices(folder, ReportIdentity(fake.url, "", step)), step, now)


def allocated(found: PeriodReader, fake: FakePrometheus) -> float:
    """Return the allocated GPU hours."""
    ledger = Ledger(fake.month.period, found.step)
    for answers in found.slices(fake.month.period, queries()):
        ledger.take(answers)
    return sum(float(book.allocated) for book in ledger.close().nodes.values()) / HOUR


def failure(fake: FakePrometheus, folder: Path, **how: int) -> ExplainedError:
    with pytest.raises(ExplainedError) as caught:
        allocated(reading(fake, folder, **how), fake)
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value.__cause__)
    return caught.value


def test_a_period_is_read_once_in_slices_of_a_day(fake: FakePrometheus, tmp_path: Path) -> None:
    assert allocated(reading(fake, tmp_path), fake) == 28 * 4

    start = fake.month.period.start
    assert fake.slices == {(start, start + 24 * HOUR - 1), (start + 24 * HOUR, start + 30 * HOUR - 1)}
    assert len(fake.asked) == 2 * len(Question)
    assert fake.headers[0]["authorization"] == f"Bearer {SECRET}"
    # The kept answers contain no secret.
    assert not [path for path in tmp_path.iterdir() if SECRET.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    "too_much",
    [
        refused(422, "execution", "query processing would load too many samples into memory in query execution"),
        refused(503, "timeout", "query timed out in expression evaluation"),
        refused(400, "bad_data", "exceeded maximum resolution of 11,000 points per timeseries"),
    ],
)
def test_a_slice_that_is_too_large_is_halved_repeatedly(fake: FakePrometheus, tmp_path: Path, too_much: Reply) -> None:
    fake.misbehave = lambda _, fields: too_much if int(fields["end"]) - int(fields["start"]) > 4 * HOUR else None

    assert allocated(reading(fake, tmp_path), fake) == 28 * 4
    assert max(end - start for start, end in fake.slices if end - start <= 4 * HOUR) == 3 * HOUR - 1


def test_a_large_reply_is_halved_and_a_single_moment_that_is_too_large_is_reported(fake: FakePrometheus, tmp_path: Path) -> None:
    assert allocated(reading(fake, tmp_path / "a", largest_reply=20_000), fake) == 28 * 4

    error = failure(fake, tmp_path / "b", largest_reply=80)
    assert "nodes at a single moment returns more" in error.problem
    assert "--match" in error.remedy


@pytest.mark.parametrize("status", [429, 503])
def test_temporary_failures_are_retried(fake: FakePrometheus, tmp_path: Path, status: int) -> None:
    fake.misbehave = lambda number, _: (status, "text/html", b"<html>try later</html>") if number % 3 else None

    assert allocated(reading(fake, tmp_path), fake) == 28 * 4


@pytest.mark.parametrize(
    "reply,message",
    [
        ((200, "text/html", b"<html><head><title>Log in\n to Grafana</title>"), "a page titled 'Log in to Grafana'"),
        ((404, "", b""), "no content type"),
        ((200, "application/json", b'{"status": "success", "data": {"resultType": "matrix", "result": [{"met'), "not with JSON"),
        (as_json([1, 2]), "JSON that is not Prometheus'"),
        (as_json({"status": "success", "data": {"resultType": "vector", "result": []}}), "the answer to a range query is not a matrix"),
        (
            as_json({"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}}]}}),
            "a series without labels and values",
        ),
        (refused(400, "bad_data", "parse error"), "Prometheus refused a query (HTTP 400)"),
        (refused(400, "bad_data", f"you sent {SECRET}"), "you sent (hidden)"),
        ((401, "text/html", b"<title>who are you</title>"), "refused access (HTTP 401)"),
        ((302, "text/html", b""), "redirects to another URL"),
        ((502, "text/html", b"<title>Bad gateway</title>"), "a page titled 'Bad gateway'"),
    ],
)
def test_an_unusable_answer_is_described(fake: FakePrometheus, tmp_path: Path, reply: Reply, message: str) -> None:
    fake.misbehave = lambda _, __: reply

    assert message in str(failure(fake, tmp_path))


def test_only_a_server_that_answered_before_is_waited_for() -> None:
    waits: list[float] = []
    nothing = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": []}}).encode()
    # Otherwise the open connection would still be served.
    with serving(lambda _: HttpReply(200, nothing, headers={"Connection": "close"})) as url:
        client = PrometheusClient(access_to(url), wait=waits.append)
        client.query_range(NODES, 0, HOUR, 60)

    for asked, waited in ((client, [1.0, 2.0, 4.0, 8.0]), (PrometheusClient(access_to(url), wait=waits.append), [])):
        waits.clear()
        with pytest.raises(ExplainedError, match="cannot be reached") as caught:
            asked.query_range(NODES, 0, HOUR, 60)
        assert (waits, caught.value.exit_code) == (waited, ExitCode.UNMET)


def test_warnings_are_kept_once_across_interruptions(fake: FakePrometheus, tmp_path: Path) -> None:
    fake.misbehave = lambda _, fields: fake.right(fields, warnings=["no store matched for this query"])
    for _ in range(2):
        found = reading(fake, tmp_path)
        allocated(found, fake)
        assert list(found.warnings) == ["no store matched for this query"]


def test_an_interrupted_report_is_resumed(fake: FakePrometheus, tmp_path: Path) -> None:
    fake.misbehave = lambda number, _: refused(400, "bad_data", "broken") if number == 15 else None
    failure(fake, tmp_path)
    fake.misbehave = lambda _, __: None
    found = reading(fake, tmp_path)

    assert allocated(found, fake) == 28 * 4
    assert found.from_disk == 14
    assert len(fake.asked) == 15 + 14


def test_a_damaged_kept_answer_is_requested_again(fake: FakePrometheus, tmp_path: Path) -> None:
    allocated(reading(fake, tmp_path), fake)
    kept = sorted(tmp_path.glob("allocations-*.json.gz"))
    kept[0].write_bytes(kept[0].read_bytes()[:-9])
    kept[1].write_bytes(gzip.compress(json.dumps({"result": [], "warnings": []}).encode()))
    found = reading(fake, tmp_path)

    assert allocated(found, fake) == 28 * 4
    assert found.from_disk == 2 * len(Question) - 2

    (tmp_path / "manifest.json").write_text("{half")
    assert reading(fake, tmp_path).kept.find(NODES, fake.month.period.start, fake.month.period.start + 24 * HOUR) is None


def test_a_folder_with_answers_to_other_questions_is_refused(fake: FakePrometheus, tmp_path: Path) -> None:
    allocated(reading(fake, tmp_path), fake)
    with pytest.raises(ExplainedError, match="answers for another server, step, selection or header"):
        reading(fake, tmp_path, step=30)


def test_answers_that_may_still_change_are_not_kept(fake: FakePrometheus, tmp_path: Path) -> None:
    allocated(reading(fake, tmp_path, now=fake.month.period.end + 60), fake)

    assert len(list(tmp_path.glob("*.json.gz"))) == len(Question)


def test_an_unwritable_resume_folder_is_reported(fake: FakePrometheus, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert "--resume-dir" in failure(fake, tmp_path / "file" / "below").remedy


@pytest.mark.parametrize(
    "options,message",
    [
        ({"url": "prometheus:9090"}, "is not the URL of a server"),
        ({"url": "https://host:99999"}, "the value is not a URL"),
        ({"url": f"https://user:{SECRET}@host"}, "the URL contains a user or password"),
        ({"url": "https://host/?tenant=a"}, "is not the URL of a server"),
        ({"headers": [f"X-Key: {SECRET}\r\nX-Other: 1"]}, "does not have the form"),
        ({"ca": Path("missing.pem")}, "missing.pem is not a file"),
        ({"token_file": Path("missing")}, "cannot be read: FileNotFoundError"),
        ({"token_env": "FLEXSPOT_TEST_UNSET"}, "has no token"),
        ({"token_env": "FLEXSPOT_TEST_TWO"}, "has more than a token"),
        (
            {"token_env": "FLEXSPOT_TEST_TOKEN", "headers": ["authorization: Basic eA=="]},
            "Authorization cannot be combined with --token-file or --token-env",
        ),
    ],
)
def test_unusable_access_options_are_refused_without_printing_a_secret(
    options: dict[str, object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEXSPOT_TEST_TOKEN", SECRET)
    monkeypatch.setenv("FLEXSPOT_TEST_TWO", f"{SECRET} {SECRET}")
    with pytest.raises(ExplainedError) as caught:
        access_to(**({"url": "https://host"} | options))  # pyrefly: ignore[bad-argument-type] -- as a table has them

    assert message in caught.value.problem
    assert SECRET not in str(caught.value)
    assert caught.value.exit_code is ExitCode.BAD_USAGE


def test_a_token_is_read_from_a_file_or_the_environment_and_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n")
    monkeypatch.setenv("FLEXSPOT_TEST_TOKEN", SECRET)
    for found in (
        access_to("https://host/prometheus/api/v1/", token_file=tmp_path / "token"),
        access_to("https://host/prometheus", token_env="FLEXSPOT_TEST_TOKEN"),  # noqa: S106 -- the name of a variable
    ):
        assert found.headers == {"Authorization": f"Bearer {SECRET}"}
        assert found.url == "https://host/prometheus"
        assert SECRET not in repr(found)


def test_a_server_is_trusted_only_by_the_given_authority(tmp_path: Path) -> None:
    month = Month()
    month.node("n1", 0, 24 * HOUR)
    ca, context = certificate(tmp_path)
    start = month.period.start
    with served(FakePrometheus(month), context) as fake:
        found = PrometheusClient(access_to(fake.url, ca=ca)).query_range(NODES, start, start + HOUR, 60)
        assert len(found.matrix.series[0].samples) == 60

        with pytest.raises(ExplainedError, match="cannot be reached") as caught:
            PrometheusClient(access_to(fake.url), wait=lambda _: None).query_range(NODES, start, start + HOUR, 60)
    assert "--ca" in caught.value.remedy
    assert len(fake.asked) == 1


def test_a_file_without_a_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(ExplainedError, match="no usable certificate"):
        PrometheusClient(access_to("https://host", ca=tmp_path / "ca.pem"))
