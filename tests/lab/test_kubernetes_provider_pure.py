"""The stand-in Kubernetes provider where no recorded call shows the official one's behaviour, without a server.

The official one is pulumi-kubernetes 4.34.2. All recorded calls are in test_recorded_calls.py; tests that need an API server are in
test_kubernetes_provider.py.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import urllib3
import yaml
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity
from provider_driver import config_map, urn_of
from pulumi.runtime.proto import provider_pb2

from flexspot.lab.providers import planning
from flexspot.lab.providers.api import ApiRefusal, LabApi
from flexspot.lab.providers.kubernetes import KubernetesStandIn, ProviderSettingsError, read_settings
from flexspot.lab.providers.lifecycle import handed_over
from flexspot.lab.providers.objects import NoNameError, NoQuantityError, canonical, normalized
from flexspot.lab.providers.planning import ProviderSettings, with_secrets
from flexspot.lab.providers.readiness import timeout_of
from flexspot.lab.providers.serving import ProviderError
from flexspot.lab.providers.values import UNKNOWN, Secret

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from flexspot.lab.cluster import KubeObject


class _Kinds:
    """Namespaced kinds, of which one has a schema: a ResourceQuota."""

    def is_namespaced(self, api_version: str, kind: str) -> bool:
        del api_version, kind
        return True

    def schemas(self, api_version: str) -> dict[str, Any]:
        quantity = "io.k8s.apimachinery.pkg.api.resource.Quantity"
        amounts = {"type": "object", "additionalProperties": {"$ref": f"#/components/schemas/{quantity}"}}
        spec = {"type": "object", "properties": {"hard": amounts}}
        kind = {"group": "", "version": "v1", "kind": "ResourceQuota"}
        quota = {"type": "object", "properties": {"spec": spec}, "x-kubernetes-group-version-kind": [kind]}
        return {"io.k8s.api.core.v1.ResourceQuota": quota, quantity: {}} if api_version == "v1" else {}


_KINDS = _Kinds()
_UNNAMED: KubeObject = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}}
_OWN = "https://127.0.0.1:6443"


def _kubeconfig(server: str) -> dict[str, Any]:
    return {
        "current-context": "lab",
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "admin"}}],
        "clusters": [{"name": "lab", "cluster": {"server": server}}],
        "users": [{"name": "admin", "user": {}}],
    }


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Return the kubeconfig of a lab."""
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(_kubeconfig(_OWN)))
    return path


def test_the_kubeconfig_may_be_a_path_a_text_an_object_or_left_out(own: Path) -> None:
    forms = (str(own), own.read_text(), _kubeconfig(_OWN), json.dumps(_kubeconfig(_OWN)))
    for settings in ({}, *({"kubeconfig": each} for each in forms)):
        assert read_settings(settings, own) == ProviderSettings()


@pytest.mark.parametrize(
    "settings,problem",
    [
        ({"kubeconfig": _kubeconfig("https://10.0.0.1:6443")}, "leads to https://10.0.0.1:6443, but this stand-in provider serves the lab"),
        ({"kubeconfig": _kubeconfig("https://127.0.0.1:1")}, "leads to https://127.0.0.1:1, but"),
        ({"kubeconfig": _kubeconfig("https://")}, 'discovery client: host must be a URL or a host:port pair: "https://"'),
        ({"context": "production"}, "'production'"),
        ({"enableServerSideApply": "false"}, "enableServerSideApply"),
        ({"renderYamlToDirectory": "out"}, "renderYamlToDirectory"),
    ],
)
def test_another_server_and_what_is_not_offered_are_refused(settings: dict[str, Any], problem: str, own: Path) -> None:
    with pytest.raises(ProviderSettingsError) as refused:
        read_settings(settings, own)

    assert problem in str(refused.value)


def test_it_does_not_start_for_a_server_that_is_not_on_this_machine(own: Path) -> None:
    own.write_text(yaml.safe_dump(_kubeconfig("https://kubernetes.example.com")))
    with pytest.raises(ProviderSettingsError, match=r"kubernetes\.example\.com, which is not on 127\.0\.0\.1"):
        KubernetesStandIn(own)


def test_a_creation_with_a_lost_answer_is_repeated(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server is restarted between creating the object and answering."""
    kinds = {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}]}
    exists = {"reason": "AlreadyExists", "message": "exists"}

    def create(manager: str) -> KubeObject:
        live = {"metadata": {"managedFields": [{"manager": manager}]}}
        left = iter([(200, kinds), urllib3.exceptions.ProtocolError("cut"), (409, exists), (200, live)])

        def request(*_: Any, **__: Any) -> Any:
            found = next(left)
            if isinstance(found, Exception):
                raise found
            return SimpleNamespace(status=found[0], data=json.dumps(found[1]).encode())

        monkeypatch.setattr(urllib3.PoolManager, "request", request)
        return LabApi(own, 10).create(config_map("default", a="1"), "default", "pulumi-kubernetes", dry_run=False)

    assert create("pulumi-kubernetes")["metadata"]
    with pytest.raises(ApiRefusal, match="exists"):
        create("somebody")


def _checked(news: KubeObject, *, olds: KubeObject | None = None, seed: bytes = b"seed", wish: Any = None) -> dict[str, Any]:
    return planning.check(_KINDS, ProviderSettings(), urn_of(_UNNAMED, "settings"), olds or {}, news, seed=seed, wish=wish)["metadata"]


def test_the_engines_seed_decides_the_name_so_that_a_preview_and_its_update_agree() -> None:
    names = [_checked(_UNNAMED, seed=seed)["name"] for seed in (b"a", b"a", b"b")]
    assert names[0] == names[1] != names[2]


@pytest.mark.parametrize("metadata", [{"name": "mine"}, {"generateName": "settings-"}, {"name": UNKNOWN}])
def test_the_programs_choice_of_name_is_kept(metadata: dict[str, Any]) -> None:
    assert _checked({**_UNNAMED, "metadata": metadata}) == {**metadata, "namespace": "default"}


def test_the_projects_autonaming_is_followed() -> None:
    options: Any = provider_pb2.CheckRequest.AutonamingOptions
    assert _checked(_UNNAMED, wish=options(proposed_name="mine", mode=options.ENFORCE))["name"] == "mine"
    with pytest.raises(NoNameError, match=r"metadata\.name must be set"):
        _checked(_UNNAMED, wish=options(mode=options.DISABLE))


def test_metadata_that_only_the_server_writes_is_dropped_from_a_copied_manifest() -> None:
    copied = {"name": "x", "uid": "1", "resourceVersion": "2", "creationTimestamp": None, "managedFields": []}
    assert _checked({**_UNNAMED, "metadata": copied}) == {"name": "x", "namespace": "default"}


@pytest.mark.parametrize("token", ["helm.sh/v3:Release", "apps/v1:DeploymentPatch", "core/v1:ConfigMapList"])
def test_unsupported_types_are_refused(token: str) -> None:
    with pytest.raises(ProviderError, match=f"kubernetes:{token}"):
        planning.check(_KINDS, ProviderSettings(), f"urn:pulumi:dev::trial::kubernetes:{token}::x", {}, {}, seed=b"")


def _changes(
    old: KubeObject,
    new: KubeObject,
    settings: ProviderSettings | None = None,
    *,
    state: KubeObject | None = None,
    ignored: Sequence[str] = (),
) -> dict[str, str]:
    verdict = planning.diff(_KINDS, settings or ProviderSettings(), state=state or old, old_inputs=old, news=new, ignored=ignored)
    return {each.written: each.change + ("_REPLACE" if each.replaces else "") for each in verdict.found}


def _deployment(app: str) -> KubeObject:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": app}}}}


def _storage_class(**fields: Any) -> KubeObject:
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}, **fields}


@pytest.mark.parametrize(
    "old,new,changes",
    [
        (_deployment("a"), _deployment("b"), {"spec.selector.matchLabels.app": "UPDATE_REPLACE"}),
        (
            _storage_class(provisioner="a"),
            _storage_class(provisioner="b", parameters={"tier": "fast"}, allowVolumeExpansion=True),
            {"allowVolumeExpansion": "ADD", "parameters": "ADD_REPLACE", "provisioner": "UPDATE_REPLACE"},
        ),
        (config_map("x", a="1"), {**config_map("x"), "data": {"a": UNKNOWN}}, {"data.a": "UPDATE"}),
        (config_map("x", a="1"), {**config_map("x", a="2"), "immutable": True}, {"data.a": "UPDATE_REPLACE", "immutable": "ADD"}),
    ],
    ids=["selector", "storage class", "unknown", "immutable"],
)
def test_a_fixed_field_replaces_the_object(old: KubeObject, new: KubeObject, changes: dict[str, str]) -> None:
    assert _changes(old, new, ProviderSettings(config_maps_mutable=True)) == changes


def test_an_ignored_change_is_no_difference() -> None:
    before, after = config_map("x", a="1"), config_map("x", a="2")
    assert _changes(before, after, ignored=["data"]) == {}
    assert _changes(before, after, ignored=["dat"]) == {"data.a": "UPDATE_REPLACE"}


def test_the_data_of_a_secret_may_be_declared_mutable() -> None:
    def secret(value: str) -> KubeObject:
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"k": value}}

    assert _changes(secret("1"), secret("2"), ProviderSettings(secrets_mutable=True)) == {"data.k": "UPDATE"}


def test_replace_unready_replaces_a_job_that_has_not_completed() -> None:
    annotations = {"pulumi.com/replaceUnready": "true"}
    job: KubeObject = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work", "annotations": annotations}}
    for unready in (True, False):
        verdict = planning.diff(
            _KINDS, ProviderSettings(), state=job, old_inputs=job, news=job, ignored=(), is_unready=lambda _, found=unready: found
        )
        assert bool(verdict.replaces) is unready


def test_older_state_without_inputs_is_no_difference() -> None:
    each = config_map("x", a="1")
    live = {**each, "metadata": {**each["metadata"], "uid": "1"}, "__initialApiVersion": "v1", "__fieldManager": "flexspot-lab"}
    assert _changes(each, each, state=live) == {}


@pytest.mark.parametrize(
    "written, canonically",
    [
        ("4000m", "4"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("65536Mi", "64Gi"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("1e3", "1e3"),
        ("1E", "1E"),
        ("1000n", "1u"),
        ("0.1n", "1n"),
        ("-1500m", "-1500m"),
        ("0", "0"),
        (2, "2"),
        (2.5, "2500m"),
    ],
)
def test_quantities_are_spelt_as_the_api_server_spells_them(written: str | float, canonically: str) -> None:
    assert canonical(written) == canonically


@pytest.mark.parametrize("written", ["", "many", "1 Gi", "1.Gi.", "1gi", "0x10", "1e", True])
def test_invalid_quantities_are_refused(written: str) -> None:
    with pytest.raises(NoQuantityError):
        canonical(written)


@given(st.from_regex(r"\A[0-9]{1,6}(\.[0-9]{1,3})?(m|k|M|G|Ki|Mi|Gi|Ti)?\Z"))
def test_a_canonical_quantity_is_unchanged_and_has_the_same_value(written: str) -> None:
    spelt = canonical(written)
    assert canonical(spelt) == spelt
    # Values smaller than the smallest unit of a spelling are rounded up.
    assert 0 <= parse_quantity(spelt) - parse_quantity(written) < 1


@pytest.mark.parametrize("hard", [{"cpu": "4000m", "memory": UNKNOWN}, ["cpu"]])
def test_an_object_with_a_value_that_is_unknown_or_of_another_type_stays_as_it_is(hard: Any) -> None:
    quota: KubeObject = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard, "more": 1}}
    assert normalized(_KINDS, quota) == quota


def test_string_data_is_stored_over_data() -> None:
    secret: KubeObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    written = {**secret, "data": {"a": "b2xk", "b": "Yg=="}, "stringData": {"a": "new"}}
    assert normalized(_KINDS, written) == {**secret, "data": {"a": "bmV3", "b": "Yg=="}}
    broken = {**secret, "data": {"a": "b2\nxk", "b": "no base64!"}}
    assert normalized(_KINDS, broken)["data"] == {"a": "b2xk", "b": "no base64!"}


def test_definitions_lose_only_their_status() -> None:
    definition: KubeObject = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "d"}}
    written = {**definition, "spec": {"preserveUnknownFields": False, "made": "up"}, "status": {}}
    assert normalized(_KINDS, written) == {**definition, "spec": {"made": "up"}}


def test_secret_inputs_are_secret_outputs() -> None:
    live = {"data": {"open": "1", "closed": "2"}, "spec": {"args": ["a", "b"]}}
    inputs = {"data": {"open": "1", "closed": Secret("2")}, "spec": {"args": [Secret("a"), "b"]}}
    assert with_secrets(live, inputs) == {"data": {"open": "1", "closed": Secret("2")}, "spec": {"args": Secret(["a", "b"])}}


def test_a_field_owned_as_a_whole_stays_owned_together_with_its_children() -> None:
    def entry(manager: str, operation: str, fields: dict[str, Any]) -> dict[str, Any]:
        return {"manager": manager, "operation": operation, "fieldsV1": {"f:spec": {"f:a": fields}}}

    live = {"metadata": {"managedFields": [entry("own", "Apply", {"f:b": {}}), entry("kubectl-patch", "Update", {})]}}
    assert handed_over(live, "own") == [entry("own", "Apply", {".": {}, "f:b": {}})]


def test_the_programs_own_timeout_overrides_the_annotation() -> None:
    annotated = {"metadata": {"annotations": {"pulumi.com/timeoutSeconds": "4"}}}
    assert [timeout_of(custom, annotated) for custom in (9, 0)] == [9, 4]
    assert timeout_of(0, {}) is None
