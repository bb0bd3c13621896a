"""Kueue's configuration, in its ConfigMap or in a release."""

from __future__ import annotations

from typing import Any

import pytest
from manifests import Manifest, views

from flexspot.policies.inventory.objects import KueueConfiguration
from flexspot.policies.values.field import UNKNOWN, Tri

NEW = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
OLD = "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\n"


def read(written: Manifest | tuple[str, Any]) -> list[tuple[str, Tri]]:
    return [(view.where, view.fair_sharing) for view in views(KueueConfiguration, written)]


def config_map(text: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "data": {"controller_manager_config.yaml": text}}


def release(**inputs: Any) -> tuple[str, Any]:
    return "kubernetes:helm.sh/v3:Release", {"chart": "oci://registry.k8s.io/kueue/charts/kueue", **inputs}


@pytest.mark.parametrize(
    "text,on",
    [
        (NEW, False),
        (NEW + "fairSharing: null\n", False),
        (NEW + "fairSharing: {preemptionStrategies: [LessThanInitialShare]}\n", True),
        (OLD + "fairSharing: {preemptionStrategies: [LessThanInitialShare]}\n", False),
        (OLD + "fairSharing: {enable: false}\n", False),
        (OLD + "fairSharing: {enable: true}\n", True),
    ],
)
def test_fair_sharing_is_on_where_the_stanza_is_and_before_v1beta2_where_its_switch_is_on(text: str, *, on: bool) -> None:
    assert read(config_map(text)) == [("data[controller_manager_config.yaml].fairSharing", on)]
    assert read(release(values={"managerConfig": {"controllerManagerConfigYaml": text}})) == [
        ("values.managerConfig.controllerManagerConfigYaml.fairSharing", on)
    ]


def test_the_chart_leaves_fair_sharing_off() -> None:
    assert [on for _, on in read(release(values={"enablePrometheus": True}))] == [False]
    assert [on for _, on in read(release())] == [False]


def test_a_configuration_in_a_file_or_in_invalid_yaml_is_unknown() -> None:
    assert [on for _, on in read(release(valueYamlFiles=["values.yaml"]))] == [UNKNOWN]
    assert [on for _, on in read(release(values={"managerConfig": {"controllerManagerConfigYaml": "{{ .x }}: ["}}))] == [UNKNOWN]


@pytest.mark.parametrize("text", ["kind: Configuration\n", "a: 1\n", "- 1\n", ": : :\n", ""])
def test_another_programs_entry_of_the_same_name_is_not_kueues(text: str) -> None:
    assert read(config_map(text)) == []
    assert read({"apiVersion": "v1", "kind": "ConfigMap", "data": None}) == []
