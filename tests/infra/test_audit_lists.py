"""Requests of `flexspot audit` to an API server, missing permissions, and servers that are not API servers."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from audited_clusters import (
    GROUP,
    audited,
    deployment,
    namespace,
    node,
    of_rule,
    pod,
    queued_job,
    queueing,
)
from served_cluster import Served, serving
from typer.testing import CliRunner

from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.audit.cluster_lists import wanted_kinds
from flexspot.infra.cli.app import app


def test_an_audit_requests_only_lists_and_never_secrets(tmp_path: Path) -> None:
    served = Served([namespace("team-a"), deployment("web"), node("a", "g6.xlarge", GROUP)])
    audited(served, tmp_path)

    assert all(each.startswith("GET ") for each in served.asked)
    assert not [each for each in served.asked if "secret" in each or "configmap" in each]


def test_forbidden_lists_are_named_and_rules_that_need_them_find_nothing(tmp_path: Path) -> None:
    job, queue = queued_job("train", suspend=True), queueing("LocalQueue", "cpu", {}, namespace="b")
    objects = [namespace("team-a"), job, queue]

    _, whole = audited(Served(objects), tmp_path)
    _, part = audited(Served(objects, forbidden={"localqueues", "nodes"}), tmp_path)

    assert [each["object"] for each in of_rule(whole, "work-in-missing-queue")] == ["batch/v1/Job/team-a/train"]
    assert not of_rule(part, "work-in-missing-queue")
    assert set(part["summary"]["lacking"]) == {"list localqueues.kueue.x-k8s.io", "list nodes"}
    assert (whole["summary"]["complete"], part["summary"]["complete"]) == (True, False)


def test_a_namespaced_user_asks_for_lists_of_its_namespaces(tmp_path: Path) -> None:
    served = Served(
        [namespace("team-a"), deployment("web"), deployment("other", "team-b")], forbidden={"/apis/apps/v1/deployments", "nodes"}
    )

    _, report = audited(served, tmp_path, "-n", "team-a")

    assert {each["object"] for each in report["findings"]} == {"apps/v1/Deployment/team-a/web"}
    assert report["summary"]["lacking"] == ["list nodes"]
    assert report["summary"]["namespaces"] == ["team-a"]


def test_an_expired_continuation_is_resumed(tmp_path: Path) -> None:
    _, report = audited(Served([pod(f"p{number}", "a") for number in range(1200)], forget_once=True), tmp_path)

    assert report["summary"]["pods"] == 1200


@pytest.mark.parametrize("lacking", ["no server", "no context"])
def test_an_unreachable_cluster_is_reported(lacking: str, tmp_path: Path) -> None:
    with serving(Served([]), tmp_path) as kubeconfig:
        pass
    options = ["--context", "nowhere"] if lacking == "no context" else []

    ended = CliRunner().invoke(app, ["audit", "--kubeconfig", str(kubeconfig), *options])

    assert ended.exception is not None
    assert "hunter2" not in str(ended.exception)
    assert ("does not answer" in str(ended.exception)) is (lacking == "no server")


@pytest.mark.parametrize("path", ["/version", "/apis", "/api/v1"])
def test_a_server_that_is_not_an_api_server_is_not_audited(path: str, tmp_path: Path) -> None:
    with serving(Served([namespace("team-a")], missing={path}), tmp_path) as kubeconfig:
        ended = CliRunner().invoke(app, ["audit", "--kubeconfig", str(kubeconfig)])

    assert isinstance(ended.exception, ExplainedError)
    assert "does not answer" in ended.exception.problem


def test_an_api_version_that_disappears_meanwhile_has_no_objects(tmp_path: Path) -> None:
    _, report = audited(Served([namespace("team-a"), deployment("web")], missing={"/apis/apps/v1"}), tmp_path)

    assert report["summary"]["objects"] == 1


def test_a_kind_that_the_preferred_version_lacks_is_listed_in_another(tmp_path: Path) -> None:
    metadata = {"name": "a", "namespace": "team-a"}
    both = [
        {"apiVersion": f"serving.kserve.io/{version}", "kind": kind, "metadata": metadata, "spec": {}}
        for version, kind in (("v1beta1", "InferenceService"), ("v1alpha1", "LLMInferenceService"), ("v1alpha1", "InferenceService"))
    ]
    served = Served([namespace("team-a"), *both])

    audited(served, tmp_path)

    lists = [each.partition("?")[0] for each in served.asked if "limit=" in each and "kserve" in each]
    # A kind of two versions is listed once, in the preferred one.
    assert lists == ["GET /apis/serving.kserve.io/v1beta1/inferenceservices", "GET /apis/serving.kserve.io/v1alpha1/llminferenceservices"]


@pytest.mark.parametrize(
    "name,remedy", [("team-aa", "did you mean team-a? allowed: team-a, team-b"), ("", "lower-case letters"), ("a/b", "lower-case letters")]
)
def test_an_unknown_namespace_is_reported_with_the_known_ones(name: str, remedy: str, tmp_path: Path) -> None:
    with serving(Served([namespace("team-a"), namespace("team-b"), deployment("web")]), tmp_path) as kubeconfig:
        ended = CliRunner().invoke(app, ["audit", "--kubeconfig", str(kubeconfig), "-n", "team-b", "-n", name])

    assert isinstance(ended.exception, ExplainedError)
    assert f"--namespace: the cluster has no namespace {name!r}" in ended.exception.problem
    assert remedy in ended.exception.remedy


def test_a_namespace_is_not_checked_if_namespaces_cannot_be_listed(tmp_path: Path) -> None:
    _, report = audited(Served([namespace("team-a"), deployment("web")], forbidden={"namespaces"}), tmp_path, "-n", "team-b")

    assert report["summary"]["lacking"] == ["list namespaces"]


def test_the_guides_role_can_list_everything_that_an_audit_requests() -> None:
    text = (Path(__file__).parents[2] / "docs" / "guides" / "audit.md").read_text()
    role = yaml.safe_load(text.partition("```yaml")[2].partition("```")[0])

    allowed = {group for each in role["rules"] for group in each["apiGroups"]}
    assert wanted_kinds().keys() <= allowed
    assert not any(word in str(role) for word in ("secrets", "configmaps", "get"))
