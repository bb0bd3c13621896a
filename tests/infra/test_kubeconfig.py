"""An unusable kubeconfig: every command that takes one reports its path, the problem and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.kubeconfig import access

if TYPE_CHECKING:
    from pathlib import Path

WORKING = """\
apiVersion: v1
kind: Config
clusters: [{name: ours, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: ann, context: {cluster: ours, user: ann, namespace: team-a}}, {name: root, context: {cluster: ours, user: ann}}]
users: [{name: ann, user: {}}]
current-context: ann
"""


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("clusters: [", id="no YAML"),
        pytest.param("", id="empty"),
        pytest.param("just words", id="a text"),
        pytest.param("[1, 2]", id="a list"),
        pytest.param("apiVersion: v1\nkind: Config\n", id="nothing in it"),
        pytest.param(WORKING.replace("cluster: {server", "cluster: {sever"), id="no server"),
        pytest.param(
            WORKING.replace("cluster: ours, user: ann, namespace", "cluster: others, user: ann, namespace"), id="another's cluster"
        ),
        pytest.param(WORKING.replace("current-context: ann", "current-context: bob"), id="no such context"),
        pytest.param(WORKING.replace("contexts: [", "contexts: 7 #"), id="contexts are a number"),
        pytest.param("\x00\x01", id="no text"),
    ],
)
def test_an_unusable_kubeconfig_is_reported_with_its_path_and_problem(content: str, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(content)

    with pytest.raises(ExplainedError) as refused:
        access(path, None)

    assert refused.value.problem.startswith(f"the kubeconfig {path} cannot be used: ")
    assert not refused.value.problem.endswith((": .", ".."))
    assert "--kubeconfig" in refused.value.remedy
    assert refused.value.exit_code is ExitCode.BAD_USAGE


@pytest.mark.parametrize("there", [False, True])
def test_a_kubeconfig_that_is_not_a_file_is_reported(tmp_path: Path, *, there: bool) -> None:
    with pytest.raises(ExplainedError, match="there is no such file"):
        access(tmp_path if there else tmp_path / "nowhere", None)


def test_the_namespace_is_that_of_the_context(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(WORKING)

    assert (access(path, None).context, access(path, None).namespace) == ("ann", "team-a")
    assert (access(path, "root").context, access(path, "root").namespace) == ("root", None)
    with pytest.raises(ExplainedError, match="bob"):
        access(path, "bob")


def test_a_cluster_on_the_same_machine_is_reached_without_the_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.test:3128")
    path = tmp_path / "kubeconfig"
    path.write_text(WORKING)

    assert access(path, None).client.configuration.proxy is None
    path.write_text(WORKING.replace("127.0.0.1", "cluster.example.test"))
    assert access(path, None).client.configuration.proxy == "http://proxy.example.test:3128"


def test_a_missing_kubeconfig_outside_a_pod_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(ExplainedError, match="the kubeconfig that kubectl would use cannot be used"):
        access(None, None, also_in_pod=True)
