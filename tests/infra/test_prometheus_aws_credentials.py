"""Credentials for Amazon Managed Service for Prometheus: found in a pod, renewed while a report is read, reported if missing."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import pytest
from aws_workspace import HOST, REGION, ROLE, WORKSPACE, World, workspace
from loopback_server import Reply, Request, serving
from signed_prometheus import AwsGate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return workspace(tmp_path, monkeypatch)


def fake_sts(keys: dict[str, tuple[str, str | None]], minutes: int) -> Callable[[Request], Reply]:
    """Return a fake STS that exchanges a web identity for a role's credentials, new ones each time. They are added to `keys`."""

    def reply(asked: Request) -> Reply:
        fields = {name: values[0] for name, values in parse_qs(asked.body).items()}
        assert (fields["Action"], fields["RoleArn"], fields["WebIdentityToken"]) == ("AssumeRoleWithWebIdentity", ROLE, "a.web.identity")
        key = f"ASIAEXAMPLE{len(keys)}"
        keys[key] = f"secret-{key}", f"token-{key}"
        ends = f"{datetime.now(UTC) + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"
        given = (
            f"<AccessKeyId>{key}</AccessKeyId><SecretAccessKey>secret-{key}</SecretAccessKey><SessionToken>token-{key}</SessionToken>"
            f"<Expiration>{ends}</Expiration>"
        )
        answer = f"<AssumeRoleWithWebIdentityResult><Credentials>{given}</Credentials></AssumeRoleWithWebIdentityResult>"
        space = 'xmlns="https://sts.amazonaws.com/doc/2011-06-15/"'
        return Reply(200, f"<AssumeRoleWithWebIdentityResponse {space}>{answer}</AssumeRoleWithWebIdentityResponse>".encode(), "text/xml")

    return reply


def without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)


def in_a_pod(world: World, monkeypatch: pytest.MonkeyPatch, sts: str) -> None:
    """Set the variables of an EKS pod whose service account has a role, with STS at `sts`."""
    (world.folder / "identity").write_text("a.web.identity")
    without_keys(monkeypatch)
    monkeypatch.setenv("AWS_ROLE_ARN", ROLE)
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(world.folder / "identity"))
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts)


def test_expiring_credentials_are_renewed_while_a_report_is_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    keys: dict[str, tuple[str, str | None]] = {}
    gate = AwsGate(REGION, keys)

    def newest(request: Request) -> Reply | None:
        for old in list(keys)[:-1]:
            del keys[old]
            keys[f"(gone) {old}"] = "", ""
        return gate(request)

    # Before each use, botocore renews credentials that expire within ten minutes.
    with serving(fake_sts(keys, minutes=5)) as sts:
        in_a_pod(world, monkeypatch, sts)
        world.asked(newest)

    assert len(set(gate.let_in)) == len(gate.let_in) > 1


def test_missing_credentials_are_reported_before_any_request(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    without_keys(monkeypatch)
    printed = world.run(f"https://{HOST}{WORKSPACE}", code=2)

    assert printed.splitlines()[0] == "AWS credentials were not found."
    assert "aws sso login" in printed
    assert "IRSA or EKS Pod Identity" in printed


def test_only_the_kind_of_a_credential_error_is_shown(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "gone")
    assert "cannot be obtained: ProfileNotFound." in world.run(f"https://{HOST}{WORKSPACE}", code=2)
    monkeypatch.delenv("AWS_PROFILE")

    denied = b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>a.web.identity may not</Message></Error></ErrorResponse>"
    with serving(lambda _: Reply(403, denied, "text/xml")) as sts:
        in_a_pod(world, monkeypatch, sts)
        printed = world.run(f"https://{HOST}{WORKSPACE}", code=1)
    assert printed.splitlines()[0] == "the AWS credentials cannot be obtained: AccessDenied."
    assert "a.web.identity" not in printed


def test_an_expired_single_sign_on_session_has_the_command_to_start_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    without_keys(monkeypatch)
    (world.folder / "config").write_text(
        "[sso-session acme]\nsso_start_url = https://acme.awsapps.com/start\nsso_region = eu-central-1\n"
        "[default]\nsso_session = acme\nsso_account_id = 123456789012\nsso_role_name = reader\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(world.folder / "config"))
    monkeypatch.setenv("HOME", str(world.folder))
    printed = world.run(f"https://{HOST}{WORKSPACE}", code=1)

    assert "the AWS credentials cannot be obtained" in printed
    assert "aws sso login" in printed


def test_a_missing_signing_library_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.auth", None)

    assert "--extra prometheus-aws" in world.run(f"https://{HOST}{WORKSPACE}", code=2)
