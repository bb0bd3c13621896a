"""The stand-in Kubernetes provider before anything is created: its settings, names and namespaces.

Each test says in its first line what the official provider (pulumi-kubernetes 4.34.2) does, and in which recorded scenario that is seen
(tests/lab/recordings); "source" means that only its code says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from provider_driver import Driver, config_map, driving, refusal, urn_of
from pulumi.runtime.proto import provider_pb2

from lab.providers.kubernetes import KubernetesStandIn
from lab.providers.settings import SettingsError
from lab.providers.values import UNKNOWN, decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import KubeObject
    from lab.control_plane import ControlPlane

pytestmark = pytest.mark.lab

_UNNAMED = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}}


@pytest.fixture
def driver(lab: ControlPlane) -> Iterator[Driver]:
    with driving(lab.home.kubeconfig) as found:
        yield found


def _elsewhere(lab: ControlPlane, server: str) -> str:
    content = yaml.safe_load(lab.home.kubeconfig.read_text(encoding="utf-8"))
    content["clusters"][0]["cluster"]["server"] = server
    return yaml.safe_dump(content)


def test_the_kubeconfig_may_be_a_path_a_text_or_left_out(driver: Driver, lab: ControlPlane) -> None:
    """The official provider takes the same three."""
    driver.configure(kubeconfig=str(lab.home.kubeconfig))
    driver.configure(kubeconfig=lab.home.kubeconfig.read_text(encoding="utf-8"))
    driver.configure(kubeconfig=yaml.safe_load(lab.home.kubeconfig.read_text(encoding="utf-8")))
    driver.configure()


@pytest.mark.parametrize("server", ["https://10.0.0.1:6443", "https://127.0.0.1:1"])
def test_another_server_is_refused_and_never_reached(driver: Driver, lab: ControlPlane, server: str) -> None:
    """The official provider would go there; the stand-in is for the lab alone."""
    with refusal() as refused:
        driver.configure(kubeconfig=_elsewhere(lab, server))
    assert server in refused.text
    assert str(lab.home.kubeconfig) in refused.text
    with refusal() as refused:
        driver.stub.Configure(provider_pb2.ConfigureRequest(args=encode({"kubeconfig": _elsewhere(lab, server)})))
    assert "serves the lab" in refused.text


def test_it_does_not_start_for_a_server_that_is_not_on_this_machine(lab: ControlPlane, tmp_path: Path) -> None:
    """The official provider starts for any."""
    elsewhere = tmp_path / "kubeconfig"
    elsewhere.write_text(_elsewhere(lab, "https://kubernetes.example.com"), encoding="utf-8")
    with pytest.raises(SettingsError, match=r"kubernetes\.example\.com, which is not on 127\.0\.0\.1"):
        KubernetesStandIn(elsewhere)


def test_a_context_that_is_not_there_is_refused(driver: Driver) -> None:
    """The official provider refuses it too."""
    with refusal() as refused:
        driver.configure(context="production")
    assert "'production'" in refused.text


@pytest.mark.parametrize("setting", [{"enableServerSideApply": False}, {"renderYamlToDirectory": "out"}])
def test_settings_that_the_stand_in_lacks_are_refused(driver: Driver, setting: dict[str, Any]) -> None:
    """The official provider has client-side apply and rendering to files."""
    with refusal() as refused:
        driver.configure(**setting)
    assert next(iter(setting)) in refused.text


def test_the_version_is_the_sdks(driver: Driver) -> None:
    """The engine compares the official provider's version with the SDK's."""
    assert driver.stub.GetPluginInfo(provider_pb2.GetSchemaRequest()).version == "4.34.2"


def test_an_object_without_a_name_gets_one_and_a_mark(driver: Driver) -> None:
    """Official: NAME-xxxxxxxx and the annotation pulumi.com/autonamed (03, 11)."""
    metadata = driver.check(_UNNAMED, name="settings")["metadata"]
    assert metadata["name"].startswith("settings-")
    assert len(metadata["name"]) == len("settings-") + 8
    assert metadata["annotations"] == {"pulumi.com/autonamed": "true"}


def test_the_same_seed_gives_the_same_name(driver: Driver) -> None:
    """Official: the engine's seed decides, so that a preview and its update agree."""
    names = [driver.check(_UNNAMED, seed=seed)["metadata"]["name"] for seed in (b"a", b"a", b"b")]
    assert names[0] == names[1] != names[2]


def test_a_given_name_and_a_generate_name_are_kept(driver: Driver) -> None:
    """Official: neither is autonamed."""
    assert driver.check(config_map("default", a="1"))["metadata"] == {"name": "settings", "namespace": "default"}
    generated = {**_UNNAMED, "metadata": {"generateName": "settings-"}}
    assert driver.check(generated)["metadata"] == {"generateName": "settings-", "namespace": "default"}


def test_an_autonamed_object_keeps_its_name(driver: Driver) -> None:
    """Official: the old inputs' name is adopted."""
    old = driver.check(_UNNAMED, seed=b"first")
    assert driver.check(_UNNAMED, olds=old, seed=b"second")["metadata"] == old["metadata"]


def test_a_name_that_is_not_known_yet_stays_unknown(driver: Driver) -> None:
    """Official: an unknown name is not replaced by an automatic one."""
    assert driver.check({**_UNNAMED, "metadata": {"name": UNKNOWN}})["metadata"] == {"name": UNKNOWN, "namespace": "default"}


def test_the_projects_autonaming_is_followed(driver: Driver) -> None:
    """Official: `pulumi:autonaming` proposes names, or forbids them."""
    options: Any = provider_pb2.CheckRequest.AutonamingOptions
    request: Any = provider_pb2.CheckRequest(
        urn=urn_of(_UNNAMED), news=encode(_UNNAMED), autonaming=options(proposed_name="mine", mode=options.ENFORCE)
    )
    assert decode(driver.stub.Check(request).inputs)["metadata"]["name"] == "mine"
    request.autonaming.mode = options.DISABLE
    with refusal() as refused:
        driver.stub.Check(request)
    assert "metadata.name must be set" in refused.text


def test_the_providers_namespace_is_for_namespaced_kinds_that_name_none(driver: Driver) -> None:
    """Official: `namespace` is a default, `default` where there is none, and neither is for cluster-scoped kinds (09, 12)."""
    assert driver.check(_UNNAMED)["metadata"]["namespace"] == "default"
    driver.configure(namespace="team-a")
    assert driver.check(_UNNAMED)["metadata"]["namespace"] == "team-a"
    assert driver.check(config_map("team-b"))["metadata"]["namespace"] == "team-b"
    assert "namespace" not in driver.check({"apiVersion": "v1", "kind": "Namespace"})["metadata"]


def test_no_label_says_that_pulumi_manages_the_object(driver: Driver) -> None:
    """Official: app.kubernetes.io/managed-by is of client-side apply, and what was made so keeps it (12)."""
    assert "labels" not in driver.check(_UNNAMED)["metadata"]
    labels = {"app.kubernetes.io/managed-by": "pulumi"}
    old: KubeObject = {**_UNNAMED, "metadata": {"name": "x", "labels": labels}}
    assert driver.check({**_UNNAMED, "metadata": {"name": "x"}}, olds=old)["metadata"]["labels"] == labels


def test_a_built_in_kind_is_brought_into_its_normal_form_and_a_custom_resource_is_not(driver: Driver) -> None:
    """Official: canonical quantities, no unknown fields, no empty data (08, 09, 12); custom resources stay as they are (08, 09)."""
    assert driver.check({**config_map("default", a="1"), "dat": {}, "binaryData": {}}).keys() == {"apiVersion", "kind", "metadata", "data"}
    quota: KubeObject = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": {"cpu": "4000m", "memory": "1024Mi"}},
    }
    assert driver.check(quota)["spec"]["hard"] == {"cpu": "4", "memory": "1Gi"}
    quota["spec"]["hard"]["cpu"] = "many"
    assert driver.check(quota)["spec"]["hard"] == {"cpu": "many", "memory": "1024Mi"}
    pool: KubeObject = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "p"},
        "spec": {"limits": {"cpu": "4000m"}, "x": 1},
    }
    assert driver.check(pool)["spec"] == pool["spec"]


def test_the_changed_settings_are_named(driver: Driver) -> None:
    """Official: DiffConfig gives the names in `diffs`, and no replacement for the same server (07, 12)."""
    olds, news = encode({"namespace": "a", "enablePatchForce": "true"}), encode({"namespace": "b", "enablePatchForce": "true"})
    answer = driver.stub.DiffConfig(provider_pb2.DiffRequest(olds=olds, news=news))
    assert (list(answer.diffs), list(answer.replaces)) == (["namespace"], [])


def test_read_only_metadata_is_dropped(driver: Driver) -> None:
    """Official: uid, resourceVersion and the like are removed from inputs, as copied manifests have them (source)."""
    copied: KubeObject = {
        **_UNNAMED,
        "metadata": {"name": "x", "uid": "1", "resourceVersion": "2", "creationTimestamp": None, "managedFields": []},
    }
    assert driver.check(copied)["metadata"] == {"name": "x", "namespace": "default"}


@pytest.mark.parametrize("token", ["helm.sh/v3:Release", "apps/v1:DeploymentPatch", "core/v1:ConfigMapList"])
def test_types_that_it_does_not_do_are_refused(driver: Driver, token: str) -> None:
    """Official: does releases and patches; refuses lists."""
    with refusal() as refused:
        driver.stub.Check(provider_pb2.CheckRequest(urn=f"urn:pulumi:dev::trial::kubernetes:{token}::x", news=encode({})))
    assert f"kubernetes:{token}" in refused.text


def test_yaml_is_read_and_other_functions_are_named(driver: Driver) -> None:
    """Official: also renders charts and kustomizations; an unknown function is an error (10)."""
    answer = driver.stub.Invoke(provider_pb2.InvokeRequest(tok="kubernetes:yaml:decode", args=encode({"text": "a: 1\n---\nb: 2\n"})))
    assert decode(getattr(answer, "return")) == {"result": [{"a": 1}, {"b": 2}]}
    with refusal() as refused:
        driver.stub.Invoke(provider_pb2.InvokeRequest(tok="kubernetes:helm:template", args=encode({})))
    assert refused.text == 'unknown Invoke type "kubernetes:helm:template"'


def test_a_proxy_of_the_environment_is_not_used(lab: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Official: uses it, except for loopback."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
        monkeypatch.setenv(name.lower(), "http://127.0.0.1:1")
    with driving(lab.home.kubeconfig) as driver:
        assert driver.create(config_map(namespace, a="1")).identity == f"{namespace}/settings"
