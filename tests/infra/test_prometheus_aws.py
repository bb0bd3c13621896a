"""Reading Amazon Managed Service for Prometheus: requests are signed with botocore's credentials, and failures are explained."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import botocore.session
import pytest
from aws_workspace import HOST, REGION, SIGNED, TOKEN, WORKSPACE, World, gate_of, workspace
from fake_prometheus import FakePrometheus
from loopback_server import Reply, Request, serving
from moto.iam.aws_managed_policies import aws_managed_policies_data
from signed_prometheus import guarded, on_this_machine, refused_by_aws, with_body
from typer.testing import CliRunner

from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.cli.app import app
from flexspot.infra.prometheus.access import CloudAuth, access_to

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return workspace(tmp_path, monkeypatch)


def test_a_workspace_has_the_same_report_as_an_open_prometheus(world: World) -> None:
    fake, gate = FakePrometheus(world.month), gate_of()
    with guarded(fake, lambda _: None, world.tls) as open_address, guarded(FakePrometheus(world.month), gate, world.tls) as address:
        expected = json.loads(world.run(open_address))
        found = json.loads(world.run(f"{address}{WORKSPACE}", *SIGNED))

    assert found.pop("of") != expected.pop("of")
    assert found == expected
    assert len(gate.let_in) == len(fake.asked)
    assert not any("authorization" in headers for headers in fake.headers)


def test_requests_to_the_workspaces_own_address_are_signed_without_options(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    on_this_machine(HOST, monkeypatch)
    gate = gate_of()
    with guarded(FakePrometheus(world.month), gate, world.tls) as address:
        port = address.rpartition(":")[2]
        # The address in AWS's console.
        found = json.loads(world.run(f"https://{HOST}:{port}{WORKSPACE}/api/v1/query"))

    assert found["node_usd"] == "183.44"
    assert len(gate.let_in) > 0


def test_the_history_of_machines_is_read_with_signed_requests(world: World) -> None:
    gate = gate_of()
    period = ("--from", "2026-10-01", "--to", "2026-10-02", "--step", "60", "--discount-percent", "40", "--format", "json")
    with guarded(FakePrometheus(world.month), gate, world.tls) as address:
        arguments = ["advise", "reserve", "--prometheus", f"{address}{WORKSPACE}", "--ca", str(world.ca), *SIGNED, *period]
        result = CliRunner().invoke(app, arguments)

    assert json.loads(result.stdout)["history"]["hours"] == 24
    assert len(gate.let_in) > 0


def test_own_headers_are_sent_with_a_signed_request(world: World) -> None:
    fake = FakePrometheus(world.month)
    with guarded(fake, gate_of(), world.tls) as address:
        world.run(f"{address}{WORKSPACE}", *SIGNED, "--header", "X-Scope-OrgID: ml")

    assert {headers.get("x-scope-orgid") for headers in fake.headers} == {"ml"}


def test_a_wrong_secret_or_region_is_reported(world: World) -> None:
    printed = world.asked(gate_of(TOKEN, "another"), code=1)
    assert "the signature is not accepted" in printed
    assert "check the secret key" in printed

    printed = world.asked(gate_of(), "--prometheus-auth", "aws", "--aws-region", "us-east-1", code=1)
    assert "the request is signed for a region that is not the workspace's" in printed
    assert "--aws-region" in printed


def test_a_body_that_was_changed_in_transit_is_reported(world: World) -> None:
    printed = world.asked(gate_of(), between=with_body(lambda body: body.replace("step=60", "step=61")), code=1)

    assert "Prometheus refused access: the signature is not accepted (HTTP 403)." in printed
    assert "must change neither host, path nor body" in printed


@pytest.mark.parametrize(
    "kind,message,problem,remedy",
    [
        (
            "AccessDeniedException",
            f"User: arn:aws:sts::123456789012:assumed-role/chargeback/me is not authorized to perform: aps:QueryMetrics, sent {TOKEN}",
            "the identity may not query the workspace",
            "aps:QueryMetrics",
        ),
        ("ExpiredTokenException", "The security token included in the request is expired", "credentials have expired", "aws sso login"),
        ("UnrecognizedClientException", "The security token included in the request is invalid.", "not know the access key", "AWS_PROFILE"),
        (
            "InvalidSignatureException:http://internal",
            "Signature expired: 20261127T is now earlier than 2026",
            "this machine's clock differs",
            "set the clock",
        ),
        ("MissingAuthenticationTokenException", "Missing Authentication Token", "did not arrive", "proxy"),
    ],
)
def test_refusals_of_aws_have_a_remedy(world: World, kind: str, message: str, problem: str, remedy: str) -> None:
    shown = world.refused(refused_by_aws(kind, message))

    assert problem in shown.splitlines()[0]
    assert remedy in shown.splitlines()[-1]


def test_a_secret_that_a_server_repeats_is_hidden_before_its_text_is_cut(world: World) -> None:
    said = "parse error: the token has expired"
    shown = world.refused(refused_by_aws("ValidationException", f"{said}{'x' * (285 - len(said))}{TOKEN}", 400))

    assert TOKEN[:4] not in shown
    assert "Prometheus refused a query (HTTP 400)." in shown
    assert said in shown


def test_a_secret_that_a_server_repeats_in_a_warning_is_hidden(world: World) -> None:
    fake = FakePrometheus(world.month)
    fake.misbehave = lambda _, fields: fake.right(fields, warnings=[f"asked with {TOKEN}"])
    with guarded(fake, gate_of(), world.tls) as address:
        shown = world.run(f"{address}{WORKSPACE}", *SIGNED)

    assert "asked with (hidden)" in shown


def test_a_redirect_carries_no_signature_anywhere(world: World) -> None:
    arrived: list[Request] = []

    def elsewhere(request: Request) -> Reply:
        arrived.append(request)
        return Reply(200)

    with serving(elsewhere) as other:
        printed = world.refused(Reply(307, headers={"Location": f"{other}/api/v1/query_range"}))

    assert "redirects to another URL (HTTP 307)" in printed
    assert arrived == []


@pytest.mark.parametrize(
    "url,options,problem",
    [
        (f"http://{HOST}{WORKSPACE}", {}, "http:// would show the credentials"),
        ("http://proxy.test", {"auth": CloudAuth.AWS, "aws_region": REGION}, "http:// would show the credentials"),
        (f"https://{HOST}", {}, "names no workspace"),
        (f"https://{HOST}{WORKSPACE}", {"auth": CloudAuth.GCP}, "is a service of aws, not of gcp"),
        (f"https://{HOST}{WORKSPACE}", {"aws_region": "us-east-1"}, f"is in {REGION}"),
        (f"https://{HOST}{WORKSPACE}", {"headers": ["Authorization: Bearer x"]}, "accepts only signed requests"),
        (f"https://{HOST}{WORKSPACE}", {"headers": ["X-Amz-Date: 20261127T000000Z"]}, "--header: x-amz-date is part of AWS's signature"),
        ("https://proxy.test", {"auth": CloudAuth.AWS}, "does not contain the workspace's region"),
        (
            "https://proxy.test",
            {"auth": CloudAuth.AWS, "aws_region": REGION, "token_env": "FLEXSPOT_TEST_TOKEN"},
            "--prometheus-auth: aws signs",
        ),
        ("https://proxy.test", {"aws_region": REGION}, "requests are not signed for AWS"),
    ],
)
@pytest.mark.usefixtures("world")
def test_contradictory_options_are_refused(url: str, options: dict[str, Any], problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEXSPOT_TEST_TOKEN", "x")
    with pytest.raises(ExplainedError, match=re.escape(problem)) as caught:
        access_to(url, **options)

    assert caught.value.exit_code == 2


@pytest.mark.usefixtures("world")
def test_a_misspelt_region_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ExplainedError, match="botocore does not know eu-centrl-1") as caught:
        access_to("https://proxy.test", auth=CloudAuth.AWS, aws_region="eu-centrl-1")

    assert caught.value.remedy.startswith("use eu-central-1; ")


@pytest.mark.usefixtures("world")
def test_the_region_is_in_every_host_that_aws_gives_workspaces() -> None:
    for region in ("eu-central-1", "us-gov-west-1"):
        for host in (
            f"aps-workspaces.{region}.amazonaws.com",
            f"aps-workspaces.{region}.api.aws",
            f"aps-workspaces-fips.{region}.amazonaws.com",
            f"vpce-0123456789abcdef0-abcdefgh.aps-workspaces.{region}.vpce.amazonaws.com",
        ):
            signer = access_to(f"https://{host}{WORKSPACE}").signer
            assert signer is not None
            sent = signer.headers("POST", f"https://{host}{WORKSPACE}/api/v1/query_range", b"query=up", {})
            assert f"/{region}/aps/aws4_request" in sent["Authorization"]


@pytest.mark.parametrize(
    "host",
    [f"{HOST}.example.com", f"{HOST}.", f"x{HOST}", f"aps-workspaces.{REGION}.amazonaws.com.evil.test", "aps-workspaces.amazonaws.com"],
)
@pytest.mark.usefixtures("world")
def test_no_credentials_go_to_a_host_that_only_looks_like_awss(host: str) -> None:
    assert access_to(f"https://{host}{WORKSPACE}").signer is None


def test_the_required_permission_is_in_awss_managed_policy(world: World) -> None:
    printed = world.refused(refused_by_aws("AccessDeniedException", ""))
    [allowed] = json.loads(aws_managed_policies_data)["AmazonPrometheusQueryAccess"]["Document"]["Statement"]

    assert botocore.session.get_session().get_service_model("amp").signing_name == "aps"
    assert "AmazonPrometheusQueryAccess" in printed
    assert set(re.findall(r"aps:\w+", printed)) == {"aps:QueryMetrics"} < set(allowed["Action"])
