"""Reading a Terraform state in both of its forms, its sensitive values, and files that are not a state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexspot.capacity.adopting.found import Found
from flexspot.capacity.adopting.proposal import ImportOptions, propose
from flexspot.capacity.adopting.reading import from_state
from flexspot.capacity.adopting.terraform_state import read_state
from flexspot.capacity.values.errors import ExitCode, ExplainedError

STATES = Path(__file__).parent / "states"


def shown(*resources: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"format_version": "1.0", "values": {"root_module": {"resources": list(resources)}}} | more).encode()


def resource(kind: str, values: Any, address: str = "", **more: Any) -> dict[str, Any]:
    return {"address": address or f"{kind}.this", "mode": "managed", "type": kind, "values": values, **more}


def refused(written: bytes) -> str:
    with pytest.raises(ExplainedError) as error:
        read_state(written, "state.json")
    assert error.value.exit_code is ExitCode.BAD_USAGE
    assert "\n" not in error.value.problem
    return error.value.problem


def test_resources_of_modules_in_modules_are_read_with_their_addresses() -> None:
    read = {each.address: each for each in read_state((STATES / "eks-module.json").read_bytes(), "state")}

    assert read["module.eks.aws_eks_cluster.this[0]"].values.text("name") == "ml-prod"
    assert read['module.eks.module.eks_managed_node_group["t4"].aws_eks_node_group.this[0]'].managed
    assert not read["data.aws_caller_identity.current"].managed


def test_instances_of_a_stored_state_have_their_keys_and_deposed_ones_are_skipped() -> None:
    read = [each.address for each in read_state((STATES / "gke-raw.tfstate").read_bytes(), "state")]

    assert read == ["module.platform.google_container_cluster.main", 'google_container_node_pool.pool["a100"]']


def test_sensitive_values_are_not_read() -> None:
    values = {"name": "a", "password": "p", "nested": [{"key": "k", "open": "o"}, {"key": "k2"}], "whole": {"x": 1}}
    marks = {"password": True, "nested": [{"key": True}, True], "whole": {"x": True}}
    [shown_one] = read_state(shown(resource("a", values, sensitive_values=marks)), "state")
    stored = {"version": 4, "resources": [{"mode": "managed", "type": "a", "name": "b", "instances": [
        {"attributes": {"name": "a", "secret": "s"}, "sensitive_attributes": [[{"type": "get_attr", "value": "secret"}]]}
    ]}]}  # fmt: skip
    [stored_one] = read_state(json.dumps(stored).encode(), "state")

    assert shown_one.values.fields == {"name": "a", "nested": [{"open": "o"}], "whole": {}}
    assert stored_one.values.fields == {"name": "a"}


@pytest.mark.parametrize(
    "written,problem",
    [
        (b"", "is not JSON"),
        (b"\xff\xfe\x00", "is not text in UTF-8"),
        (b"hcl { }", "is not JSON"),
        (b"[]", "its JSON is not an object"),
        (b"{}", "neither format_version nor version"),
        (b'{"format_version": "1.0"}', "without any resource"),
        (b'{"format_version": "2.0"}', "not 1.x"),
        (b'{"version": 3, "resources": []}', "version 3"),
        (b'{"version": true, "resources": []}', "neither"),
        (b'{"version": 4, "resources": {}}', "a list is missing"),
        (b'{"version": 4, "resources": [1]}', "an object is missing"),
        (b'{"version": 4, "resources": [{"instances": [{"attributes": {}}]}]}', "no type or address"),
        (b'{"format_version": "1.2", "planned_values": {}}', "is a plan"),
        (b'{"encrypted_data": "", "meta": {}, "serial": 1}', "is an encrypted state"),
        (b'{"format_version": "1.0", "values": {"root_module": []}}', "root_module is not an object"),
        (b'{"format_version": "1.0", "values": {"root_module": {"child_modules": [3]}}}', "a module in it"),
        (b'{"format_version": "1.0", "values": {"root_module": {"resources": "x"}}}', "a list is missing"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"version": ' + b"9" * 5000 + b', "resources": []}', "nested too deeply, or contains an impossible number"),
        (b"\x00" * 100, "is not JSON"),
    ],
)
def test_a_file_that_is_not_a_state_is_refused_on_one_line(written: bytes, problem: str) -> None:
    assert problem in refused(written)


def test_modules_may_be_nested_deeper_than_the_recursion_limit() -> None:
    inner: dict[str, Any] = {"resources": [resource("aws_eks_cluster", {"name": "deep"})]}
    for _ in range(400):
        inner = {"child_modules": [inner]}
    [found] = read_state(json.dumps({"format_version": "1.0", "values": {"root_module": inner}}).encode(), "state")

    assert found.values.text("name") == "deep"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMED = {
    "aws_eks_cluster": ("name", "arn", "version", "vpc_config", "tags", "compute_config"),
    "aws_eks_node_group": ("node_group_name", "cluster_name", "instance_types", "scaling_config", "taint", "labels", "launch_template"),
    "google_container_cluster": ("name", "location", "project", "node_locations", "cluster_autoscaling", "node_pool", "resource_labels"),
    "google_container_node_pool": ("name", "cluster", "location", "project", "autoscaling", "node_config", "node_locations"),
    "kubectl_manifest": ("yaml_body", "yaml_body_parsed"),
    "kubernetes_manifest": ("manifest", "object"),
    "helm_release": ("chart", "name", "namespace"),
    "aws_subnet": ("id", "availability_zone", "vpc_id", "tags"),
}


@pytest.mark.slow
@given(st.data())
def test_arbitrary_values_give_a_proposal_or_an_explained_error(data: st.DataObject) -> None:
    """One field of one resource of a complete state gets an arbitrary value. The only possible error is an explained one."""
    name = data.draw(st.sampled_from(["eks-module.json", "gke-toolkit.json", "gke-raw.tfstate"]))
    resources = read_state((STATES / name).read_bytes(), name)
    chosen = data.draw(st.integers(0, len(resources) - 1))
    fields = NAMED.get(resources[chosen].type)
    if fields is not None:
        field = data.draw(st.sampled_from(fields))
        resources[chosen].values.fields[field] = data.draw(JSON)
    found = Found()
    try:
        from_state(resources, found)
        propose(found, ImportOptions(account=data.draw(st.sampled_from([None, "444455556666", "acme-train"]))))
    except ExplainedError as refusal:
        error = refusal
    else:
        return
    assert error.exit_code is ExitCode.BAD_USAGE
    assert "\n" not in error.problem
