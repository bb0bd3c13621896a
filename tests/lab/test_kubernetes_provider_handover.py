"""Which managers give their fields to a resource's own before an update, and how the fields are put together.

Each test says in its first line in which recorded scenario the official provider does so, or that its source says so.
"""

from __future__ import annotations

from typing import Any

from lab.providers.lifecycle import handed_over, was_created_by_provider

_OWN = "pulumi-kubernetes-00331572"


def _entry(manager: str, operation: str = "Update", subresource: str = "", **fields: Any) -> dict[str, Any]:
    named = {f"f:{key}": value for key, value in fields.items()}
    found = {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": named}
    return {**found, "subresource": subresource} if subresource else found


def _object(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"managedFields": list(entries)}}


def test_the_fields_of_create_become_the_resources_own() -> None:
    """04, the first update."""
    theirs = _entry("pulumi-kubernetes", data={".": {}, "f:a": {}})
    assert handed_over(_object(theirs), _OWN) == [{**theirs, "manager": _OWN, "operation": "Apply"}]


def test_all_that_kubectl_did_is_handed_over() -> None:
    """04, 05: kubectl patch, label and apply."""
    own = _entry(_OWN, "Apply", data={"f:a": {}})
    patch, label = _entry("kubectl-patch", data={"f:z": {}}), _entry("kubectl-label", metadata={"f:labels": {"f:who": {}}})
    apply = _entry("kubectl", "Apply", data={"f:y": {}})
    found = handed_over(_object(own, patch, label, apply), _OWN)
    assert found == [_entry(_OWN, "Apply", data={"f:a": {}, "f:z": {}, "f:y": {}}, metadata={"f:labels": {"f:who": {}}})]


def test_others_and_the_status_keep_theirs() -> None:
    """05: a manager that is not kubectl's conflicts."""
    kept = [_entry("somebody", "Apply", data={"f:a": {}}), _entry("kubectl-edit", subresource="status", status={})]
    assert handed_over(_object(*kept, _entry(_OWN, "Apply", data={})), _OWN) is None
    assert handed_over(_object(*kept, _entry("kubectl-edit", data={})), _OWN) == [*kept, _entry(_OWN, "Apply", data={})]


def test_a_field_that_one_owns_whole_is_owned_beside_its_children() -> None:
    """Source: the union of structured-merge-diff's sets."""
    found = handed_over(_object(_entry(_OWN, "Apply", spec={"f:a": {"f:b": {}}}), _entry("kubectl-patch", spec={"f:a": {}})), _OWN)
    assert found == [_entry(_OWN, "Apply", spec={"f:a": {".": {}, "f:b": {}}})]


def test_what_the_provider_created_is_seen_by_its_manager() -> None:
    """04: a preview is forced until the first update."""
    assert was_created_by_provider(_object(_entry("pulumi-kubernetes")))
    assert not was_created_by_provider(_object(_entry(_OWN, "Apply"), _entry("kubectl-patch")))
    assert not was_created_by_provider({"metadata": {}})
