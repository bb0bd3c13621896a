"""Objects in the form that their Go types give them, and quantities in the API server's spelling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity
from recorded_kinds import RecordedKinds

from lab.providers.objects import NoQuantityError, canonical, input_fields, is_built_in, normalized
from lab.providers.values import UNKNOWN

if TYPE_CHECKING:
    from lab.cluster import KubeObject

_KINDS = RecordedKinds()


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
def test_what_is_no_quantity_is_refused(written: str) -> None:
    with pytest.raises(NoQuantityError):
        canonical(written)


@given(st.from_regex(r"\A[0-9]{1,6}(\.[0-9]{1,3})?(m|k|M|G|Ki|Mi|Gi|Ti)?\Z"))
def test_a_canonical_quantity_stays_itself_and_means_the_same(written: str) -> None:
    spelt = canonical(written)
    assert canonical(spelt) == spelt
    # What is smaller than the smallest unit of a spelling is rounded up.
    assert 0 <= parse_quantity(spelt) - parse_quantity(written) < 1


def _quota(**spec: Any) -> KubeObject:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": spec}


def test_quantities_and_fields_are_those_of_the_kind() -> None:
    assert normalized(_KINDS, _quota(hard={"cpu": "4000m"}, soft={"cpu": "1"})) == _quota(hard={"cpu": "4"})


@pytest.mark.parametrize("spec", [{"hard": {"cpu": "many"}}, {"hard": ["cpu"]}, {"hard": {"cpu": "4000m"}, "scopes": "x"}])
def test_an_object_with_a_value_of_another_type_stays_as_it_is(spec: dict[str, Any]) -> None:
    each = _quota(**spec, soft=1)
    assert normalized(_KINDS, each) == each


def test_what_is_not_known_yet_stays_as_it_is() -> None:
    each = _quota(hard={"cpu": "4000m", "memory": UNKNOWN}, soft={})
    assert normalized(_KINDS, each) == each


def test_empty_maps_and_lists_go_and_empty_objects_of_a_type_stay() -> None:
    container: dict[str, Any] = {"name": "c", "image": "i", "resources": {}}
    volumes: list[dict[str, Any]] = [{"name": "v", "emptyDir": {}}]
    pod: dict[str, Any] = {"containers": [{**container, "args": []}], "nodeSelector": {}, "tolerations": [], "volumes": volumes}
    template: dict[str, Any] = {"metadata": {"labels": {}}, "spec": pod}
    job: KubeObject = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}}
    found = normalized(_KINDS, job)["spec"]["template"]
    assert found == {"metadata": {}, "spec": {"containers": [container], "volumes": volumes}}


def test_a_field_of_any_content_keeps_it() -> None:
    port = {"port": 80, "targetPort": "http"}
    service: KubeObject = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [port]}}
    assert normalized(_KINDS, service)["spec"]["ports"] == [port]


def test_string_data_is_stored_over_data() -> None:
    secret: KubeObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    written = {**secret, "data": {"a": "b2xk", "b": "Yg=="}, "stringData": {"a": "new"}}
    assert normalized(_KINDS, written) == {**secret, "data": {"a": "bmV3", "b": "Yg=="}}
    broken = {**secret, "data": {"a": "b2\nxk", "b": "no base64!"}}
    assert normalized(_KINDS, broken)["data"] == {"a": "b2xk", "b": "no base64!"}


def test_definitions_lose_their_status_alone() -> None:
    definition: KubeObject = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "d"}}
    written = {**definition, "spec": {"preserveUnknownFields": False, "made": "up"}, "status": {}}
    assert normalized(_KINDS, written) == {**definition, "spec": {"made": "up"}}


def test_custom_resources_are_no_built_in_kinds() -> None:
    spec = {"limits": {"cpu": "4000m"}}
    pool: KubeObject = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"}, "spec": spec}
    assert normalized(_KINDS, pool) == pool
    assert not is_built_in(_KINDS, "karpenter.sh/v1", "NodePool")
    assert input_fields(_KINDS, "karpenter.sh/v1", "NodePool") == []
    assert is_built_in(_KINDS, "v1", "Service")
    assert sorted(input_fields(_KINDS, "v1", "Service")) == ["apiVersion", "kind", "metadata", "spec"]
