"""What `flexspot audit` asks an API server for, what it may not see, and what is no API server."""

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


def test_it_asks_for_lists_alone_and_never_for_secrets(tmp_path: Path) -> None:
    served = Served([namespace("team-a"), deployment("web"), node("a", "g6.xlarge", GROUP)])
    audited(served, tmp_path)

    assert all(each.startswith("GET ") for each in served.asked)
    assert not [each for each in served.asked if "secret" in each or "configmap" in each]


def test_lists_that_are_forbidden_are_named_and_what_hangs_on_them_is_not_held_against_anybody(tmp_path: Path) -> None:
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

    _, told = audited(served, tmp_path, "-n", "team-a")

    assert {each["object"] for each in told["findings"]} == {"apps/v1/Deployment/team-a/web"}
    assert told["summary"]["lacking"] == ["list nodes"]
    assert told["summary"]["namespaces"] == ["team-a"]


def test_a_continuation_that_the_server_forgot_goes_on(tmp_path: Path) -> None:
    _, told = audited(Served([pod(f"p{number}", "a") for number in range(1200)], forget_once=True), tmp_path)

    assert told["summary"]["pods"] == 1200


@pytest.mark.parametrize("told", ["no server", "no context"])
def test_a_cluster_that_does_not_answer_is_told_with_what_to_do(told: str, tmp_path: Path) -> None:
    with serving(Served([]), tmp_path) as kubeconfig:
        pass
    options = ["--context", "nowhere"] if told == "no context" else []

    ended = CliRunner().invoke(app, ["audit", "--kubeconfig", str(kubeconfig), *options])

    assert ended.exception is not None
    assert "hunter2" not in str(ended.exception)
    assert ("does not answer" in str(ended.exception)) is (told == "no server")


@pytest.mark.parametrize("path", ["/version", "/apis", "/api/v1"])
def test_what_answers_without_being_an_api_server_has_not_been_audited(path: str, tmp_path: Path) -> None:
    with serving(Served([namespace("team-a")], missing={path}), tmp_path) as kubeconfig:
        ended = CliRunner().invoke(app, ["audit", "--kubeconfig", str(kubeconfig)])

    assert isinstance(ended.exception, ExplainedError)
    assert "does not answer" in ended.exception.problem


def test_a_version_that_went_away_while_it_was_asked_for_has_nothing(tmp_path: Path) -> None:
    _, told = audited(Served([namespace("team-a"), deployment("web")], missing={"/apis/apps/v1"}), tmp_path)

    assert told["summary"]["objects"] == 1


def test_a_kind_that_a_groups_preferred_version_lacks_is_listed_in_another(tmp_path: Path) -> None:
    metadata = {"name": "a", "namespace": "team-a"}
    both = [
        {"apiVersion": f"serving.kserve.io/{version}", "kind": kind, "metadata": metadata, "spec": {}}
        for version, kind in (("v1beta1", "InferenceService"), ("v1alpha1", "LLMInferenceService"), ("v1alpha1", "InferenceService"))
    ]
    served = Served([namespace("team-a"), *both])

    audited(served, tmp_path)

    lists = [each.partition("?")[0] for each in served.asked if "limit=" in each and "kserve" in each]
    # A kind that two versions have is listed once, in the preferred one.
    assert lists == ["GET /apis/serving.kserve.io/v1beta1/inferenceservices", "GET /apis/serving.kserve.io/v1alpha1/llminferenceservices"]


@pytest.mark.parametrize(
    "name,remedy", [("team-aa", "did you mean team-a? allowed: team-a, team-b"), ("", "lower-case letters"), ("a/b", "lower-case letters")]
)
def test_a_namespace_that_is_not_there_is_told_with_those_that_are(name: str, remedy: str, tmp_path: Path) -> None:
    with serving(Served([namespace("team-a"), namespace("team-b"), deployment("web")]), tmp_path) as kubeconfig:
        ended = CliRunner().invoke(app, ["audit", "--kubeconfig", str(kubeconfig), "-n", "team-b", "-n", name])

    assert isinstance(ended.exception, ExplainedError)
    assert f"--namespace {name!r}: the cluster has no such namespace" in ended.exception.problem
    assert remedy in ended.exception.remedy


def test_whether_a_namespace_is_there_is_left_open_where_namespaces_may_not_be_listed(tmp_path: Path) -> None:
    _, told = audited(Served([namespace("team-a"), deployment("web")], forbidden={"namespaces"}), tmp_path, "-n", "team-b")

    assert told["summary"]["lacking"] == ["list namespaces"]


def test_the_guides_role_lists_whatever_an_audit_asks_for() -> None:
    text = (Path(__file__).parents[2] / "docs" / "guides" / "audit.md").read_text()
    role = yaml.safe_load(text.partition("```yaml")[2].partition("```")[0])

    allowed = {group for each in role["rules"] for group in each["apiGroups"]}
    assert wanted_kinds().keys() <= allowed
    assert not any(word in str(role) for word in ("secrets", "configmaps", "get"))
