"""Reading Google Cloud Managed Service for Prometheus: requests carry tokens of the credentials that google-auth finds."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import googleapiclient
import pytest
from chargeback_months import HOUR, Month
from credential_servers import google, write_service_account
from fake_prometheus import FakePrometheus
from loopback_certificate import certificate
from loopback_server import Reply, Request, serving
from signed_prometheus import GoogleGate, guarded, on_this_machine, refused_by_google, report_or_error, without_clouds

from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.prometheus.access import CloudAuth, access_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow

HOST = "monitoring.googleapis.com"
PROJECT = "/v1/projects/acme-ai-dev/location/global/prometheus"
TOKEN = "a-token-of-the-tests"  # noqa: S105 -- credential_servers' own
DOCUMENT: dict[str, Any] = json.loads((Path(googleapiclient.__file__).parent / "discovery_cache/documents/monitoring.v1.json").read_text())


class World:
    """Servers under Google's host names, and the month of their samples."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca, self.tls = certificate(folder, HOST)
        self.month = Month()
        self.month.node("spot-1", 0, 24 * HOUR)
        self.month.pod("train", "spot-1", 0, 12 * HOUR, gpus=4)

    def run(self, url: str, *arguments: str | Path, code: int = 0) -> str:
        """Return the command's output."""
        return report_or_error(url, self.ca, *arguments, code=code, hidden=(TOKEN,))

    def asked(self, gate: Callable[[Request], Reply | None], code: int = 0) -> str:
        """Return the command's output for Google's own address, with a server behind `gate`."""
        with guarded(FakePrometheus(self.month), gate, self.tls) as address:
            return self.run(f"https://{HOST}:{address.rpartition(':')[2]}{PROJECT}", code=code)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return servers without credentials for them."""
    without_clouds(str(tmp_path / "nowhere"), monkeypatch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    on_this_machine(HOST, monkeypatch)
    return World(tmp_path)


@pytest.fixture
def account(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Yield servers with the key file of a service account, for tests without federation."""
    with google({}) as address:
        write_service_account(world.folder / "key.json", address)
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(world.folder / "key.json"))
        yield world


def federated(world: World, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Use a file of workload identity federation, which has no secret: it names the identity's token and the service that exchanges it."""
    (world.folder / "subject").write_text("a.workload.identity")
    content = {
        "type": "external_account",
        "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/eks",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": f"{address}/v1/token",
        "credential_source": {"file": str(world.folder / "subject")},
    }
    (world.folder / "federation.json").write_text(json.dumps(content))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(world.folder / "federation.json"))


def exchange(tokens: set[str], seconds: int, asked: list[dict[str, str]]) -> Callable[[Request], Reply]:
    """Return a fake of Google's Security Token Service (RFC 8693). Each new token replaces those in `tokens`."""

    def reply(request: Request) -> Reply:
        asked.append({name: values[0] for name, values in parse_qs(request.body).items()})
        tokens.clear()
        tokens.add(f"{TOKEN}-{len(asked)}")
        given = {
            "access_token": f"{TOKEN}-{len(asked)}",
            "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "token_type": "Bearer",
            "expires_in": seconds,
        }
        return Reply(200, json.dumps(given).encode())

    return reply


def test_a_project_has_the_same_report_as_an_open_prometheus(account: World) -> None:
    gate = GoogleGate({TOKEN})
    with guarded(FakePrometheus(account.month), lambda _: None, account.tls) as address:
        expected = json.loads(account.run(address))
    found = json.loads(account.asked(gate))

    assert found.pop("of") != expected.pop("of")
    assert found == expected
    assert len(gate.let_in) > 0


def test_requests_match_googles_description_of_its_api(account: World) -> None:
    gate = GoogleGate({TOKEN})
    account.asked(gate)
    versions = DOCUMENT["resources"]["projects"]["resources"]["location"]["resources"]["prometheus"]["resources"]["api"]["resources"]
    method = versions["v1"]["methods"]["query_range"]
    path = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(f"/{method['flatPath']}"))

    for request in gate.let_in:
        assert request.method == method["httpMethod"]
        assert re.fullmatch(path, request.path)
        assert set(parse_qs(request.body)) <= set(DOCUMENT["schemas"][method["request"]["$ref"]]["properties"])


def test_a_workload_of_another_cloud_exchanges_its_token_for_one_that_reads_metrics(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens: set[str] = set()
    asked: list[dict[str, str]] = []
    gate = GoogleGate(tokens)
    with serving(exchange(tokens, 3600, asked)) as address:
        federated(world, monkeypatch, address)
        monkeypatch.setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "acme-quota")
        world.asked(gate)

    assert {request.headers["x-goog-user-project"] for request in gate.let_in} == {"acme-quota"}
    [only] = asked
    method = DOCUMENT["resources"]["projects"]["resources"]["location"]["resources"]["prometheus"]["resources"]["api"]["resources"]
    assert only["subject_token"] == "a.workload.identity"  # noqa: S105 -- of this test
    assert only["scope"] == "https://www.googleapis.com/auth/monitoring.read"
    assert only["scope"] in method["v1"]["methods"]["query_range"]["scopes"]


def test_an_expiring_token_is_renewed_while_a_report_is_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens: set[str] = set()
    gate, asked = GoogleGate(tokens), []
    # Before each use, google-auth renews tokens that expire within minutes.
    with serving(exchange(tokens, 30, asked)) as address:
        federated(world, monkeypatch, address)
        world.asked(gate)

    assert len({request.headers["authorization"] for request in gate.let_in}) == len(gate.let_in) == len(asked) > 1


@pytest.mark.parametrize(
    "refusal,problem,remedy",
    [
        (
            refused_by_google(403, "PERMISSION_DENIED", f"Permission monitoring.timeSeries.list denied, for {TOKEN}"),
            "may not read the project's metrics",
            "monitoring.timeSeries.list in the project; the role roles/monitoring.viewer",
        ),
        (
            refused_by_google(403, "PERMISSION_DENIED", "Cloud Monitoring API has not been used", "SERVICE_DISABLED"),
            "the Cloud Monitoring API is not enabled",
            "gcloud services enable monitoring.googleapis.com",
        ),
        (
            refused_by_google(403, "PERMISSION_DENIED", "Caller does not have required permission", "USER_PROJECT_DENIED"),
            "for quota cannot be used",
            "set-quota-project",
        ),
        (
            refused_by_google(
                403, "PERMISSION_DENIED", "Request had insufficient authentication scopes.", "ACCESS_TOKEN_SCOPE_INSUFFICIENT"
            ),
            "lacks the scope monitoring.read",
            "application-default login",
        ),
        (refused_by_google(401, "UNAUTHENTICATED", "invalid"), "does not accept the token (HTTP 401)", "continues where it stopped"),
    ],
)
def test_refusals_of_google_have_a_remedy(account: World, refusal: Reply, problem: str, remedy: str) -> None:
    shown = account.asked(lambda _: refusal, code=1)

    assert problem in shown.splitlines()[0]
    assert remedy in shown.splitlines()[-1]


def test_googles_message_about_a_bad_query_is_shown(account: World) -> None:
    shown = account.asked(lambda _: refused_by_google(400, "INVALID_ARGUMENT", "unsupported function"), code=1)

    assert "Prometheus refused a query (HTTP 400)." in shown
    assert "unsupported function" in shown


def test_a_redirect_carries_no_token_anywhere(account: World) -> None:
    arrived: list[Request] = []

    def elsewhere(request: Request) -> Reply:
        arrived.append(request)
        return Reply(200)

    with serving(elsewhere) as other:
        printed = account.asked(lambda _: Reply(302, headers={"Location": other}), code=1)

    assert "redirects to another URL (HTTP 302)" in printed
    assert arrived == []


def test_stored_answers_do_not_contain_the_token(account: World) -> None:
    left = [None, refused_by_google(401, "UNAUTHENTICATED", "expired")]
    account.asked(lambda _: left.pop(0), code=1)
    kept = [path for path in (account.folder / "cache").rglob("*") if path.is_file()]

    assert len(kept) == 2
    assert not [path for path in kept if TOKEN.encode() in path.read_bytes()]
    gate = GoogleGate({TOKEN})
    account.asked(gate)
    assert all(TOKEN in request.headers["authorization"] for request in gate.let_in)


def test_missing_credentials_are_reported_before_any_request(world: World) -> None:
    printed = world.run(f"https://{HOST}{PROJECT}", code=2)

    assert printed.splitlines()[0] == "usable Google Cloud credentials were not found."
    assert "gcloud auth application-default login" in printed


def test_only_the_kind_of_a_refused_token_exchange_is_shown(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = b'{"error": "invalid_grant", "error_description": "a.workload.identity is not trusted"}'
    with serving(lambda _: Reply(400, refusal)) as address:
        federated(world, monkeypatch, address)
        printed = world.run(f"https://{HOST}{PROJECT}", code=1)

    assert printed.splitlines()[0] == "Google Cloud returned no token: OAuthError."
    assert "a.workload.identity" not in printed


def test_a_missing_credentials_library_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.auth", None)

    assert "--extra prometheus-gcp" in world.run(f"https://{HOST}{PROJECT}", code=2)


@pytest.mark.parametrize(
    "url,options,problem",
    [
        (f"http://{HOST}{PROJECT}", {}, "http:// would show the credentials"),
        ("http://proxy.test", {"auth": CloudAuth.GCP}, "http:// would show the credentials"),
        (f"https://{HOST}", {}, f"the path is not that of the Prometheus API of {HOST}"),
        (f"https://{HOST}{PROJECT}", {"auth": CloudAuth.AWS}, "is a service of gcp, not of aws"),
        (f"https://{HOST}{PROJECT}", {"aws_region": "us-east-1"}, "requests are not signed for AWS"),
        (f"https://{HOST}{PROJECT}", {"auth": CloudAuth.GCP, "headers": ["Authorization: Bearer x"]}, "--prometheus-auth: gcp signs"),
    ],
)
@pytest.mark.usefixtures("world")
def test_contradictory_options_are_refused(url: str, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ExplainedError, match=re.escape(problem)) as caught:
        access_to(url, **options)

    assert caught.value.exit_code == 2


@pytest.mark.usefixtures("world")
def test_a_given_token_takes_precedence_over_credentials() -> None:
    access = access_to(f"https://{HOST}{PROJECT}", headers=["Authorization: Bearer of-ones-own"])

    assert access.signer is None
    assert access.headers == {"Authorization": "Bearer of-ones-own"}


@pytest.mark.usefixtures("account")
def test_requests_to_another_address_are_signed_on_request() -> None:
    assert access_to("https://proxy.test").signer is None
    assert access_to(f"https://{HOST}.evil.test{PROJECT}").signer is None
    signer = access_to("https://proxy.test", auth=CloudAuth.GCP).signer

    assert signer is not None
    assert signer.headers("POST", "https://proxy.test/api/v1/query_range", b"", {})["authorization"] == f"Bearer {TOKEN}"
