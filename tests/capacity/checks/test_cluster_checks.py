"""Checks of the cluster: images, system nodes and the permissions boundary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from resolved_fixtures import CLASS, pool, reports, settings_of

from flexspot.capacity.catalog.node_images import shipped_images
from flexspot.capacity.catalog.platform import VOCABULARIES
from flexspot.capacity.catalog.price_book import prices_of
from flexspot.capacity.plan.checks import problems_of
from flexspot.capacity.plan.checks.places import (
    images_are_of_the_version,
    images_are_pinned,
    neuron_nodes_have_an_image,
    system_nodes_reach_every_zone,
    the_boundary_is_of_the_account,
)
from flexspot.capacity.plan.resolve import resolve

if TYPE_CHECKING:
    from pathlib import Path

NEURON_POOL = {
    "classes": {"neuron-training": {**CLASS, "priority_class": "gpu-neuron"}},
    "pools": [pool("trn", "trn1.32xlarge", "spot", "neuron-training")],
    "teams": [{"name": "red", "shares": {"trn": 16}}],
}


def test_an_unpinned_image_is_refused_in_production_and_gets_a_warning_elsewhere() -> None:
    latest = {"cluster.ami": "al2023@latest"}

    for environment in ("prod", "production", "prod-eu", "production-eu"):
        assert reports(images_are_pinned, "eks", latest | {"environment": environment}) == ["refused: unpinned-ami at cluster.ami"]
    for environment in ("test", "product", "preprod", "pre-prod"):
        assert reports(images_are_pinned, "eks", latest | {"environment": environment}) == ["warned: unpinned-ami at cluster.ami"]
    assert reports(images_are_pinned, "eks", {"cluster.ami": "bottlerocket@1.65.0", "environment": "prod"}) == []


@pytest.mark.parametrize(
    "ami, version, rule",
    [
        ("al2023@v20250807", "1.33", None),
        ("al2023@v20250807", "1.34", "ami-of-another-version"),
        ("al2023@v20260107", "1.35", "ami-of-another-version"),
        ("al2023@v20260114", "1.35", None),
        ("al2023@v20261112", "1.30", "ami-of-another-version"),
        ("al2023@v20261112", "1.99", "ami-of-another-version"),
        ("al2023@v20990101", "1.35", "ami-not-known"),
        ("al2023@20260903", "1.35", "ami-not-known"),
        ("bottlerocket@1.52.0", "1.35", "ami-of-another-version"),
        ("bottlerocket@1.53.0", "1.35", None),
        ("bottlerocket@v1.53.0", "1.35", None),
    ],
)
def test_a_release_without_images_for_the_clusters_version_is_refused(ami: str, version: str, rule: str | None) -> None:
    changes = {"cluster.ami": ami, "cluster.version": version}

    assert reports(images_are_of_the_version, "eks", changes) == ([] if rule is None else [f"refused: {rule} at cluster.ami"])


@pytest.mark.parametrize(
    "ami, version, words",
    [
        ("al2023@v20260625", "1.34", []),
        ("al2023@v20260625", "1.35", ["warned: ami-neuron-not-read at cluster.ami"]),
        ("bottlerocket@1.53.0", "1.35", []),
        ("al2023@v20990101", "1.35", []),
    ],
)
def test_a_release_that_may_have_no_neuron_image_gets_a_warning(ami: str, version: str, words: list[str]) -> None:
    changes = {"cluster.ami": ami, "cluster.version": version}

    assert reports(neuron_nodes_have_an_image, "eks", {**changes, **NEURON_POOL}) == words
    assert reports(neuron_nodes_have_an_image, "eks", changes) == [], "no other node needs it"
    assert reports(neuron_nodes_have_an_image, "eks", {**changes, **NEURON_POOL, "cluster.existing": "ml"}) == []


def test_a_release_without_a_neuron_image_is_refused(tmp_path: Path) -> None:
    (tmp_path / "listed.yaml").write_text(
        "sources: {listed: {citation: what AWS listed, as_of: 2027-01-10, verified: true}}\n"
        'al2023: [{release: v20270105, source: listed, kubernetes: {"1.35": 9}, neuron: {"1.35": false}}]\n'
    )
    settings = settings_of("eks", {"cluster.ami": "al2023@v20270105", "cluster.version": "1.35", **NEURON_POOL})
    images = shipped_images().with_file(tmp_path / "listed.yaml")
    resolved, _ = resolve(settings, prices_of(VOCABULARIES[settings.cloud].catalog), images)

    [problem] = problems_of(neuron_nodes_have_an_image, resolved)

    assert problem.refused
    assert str(problem).startswith(
        "cluster.ami (is 'al2023@v20270105'): has no image with Neuron's driver for Kubernetes 1.35, so no node of trn would launch; "
    )


def test_on_an_existing_cluster_the_release_must_exist_for_any_version() -> None:
    there = {"cluster.existing": "ml", "cluster.version": "1.35"}

    assert reports(images_are_of_the_version, "eks", there | {"cluster.ami": "al2023@v20250807"}) == []
    assert reports(images_are_of_the_version, "eks", there | {"cluster.ami": "al2023@v20990101"}) == [
        "refused: ami-not-known at cluster.ami"
    ]


def test_the_system_pool_of_gke_needs_a_node_in_each_zone() -> None:
    one_node = {"cluster.system_pool": {"machine": "e2-standard-4", "min_nodes": 1, "max_nodes": 1}}

    assert reports(system_nodes_reach_every_zone, "gke", one_node) == ["refused: system-pool-below-zones at cluster.system_pool.max_nodes"]
    assert reports(system_nodes_reach_every_zone, "gke", one_node | {"zones": ["us-central1-a"]}) == []
    assert reports(system_nodes_reach_every_zone, "gke", one_node | {"cluster.existing": "shared"}) == [], "it has its own nodes"
    assert reports(system_nodes_reach_every_zone, "gke", one_node | {"cluster.mode": "autopilot"}) == [], "its nodes are GKE's"
    assert (
        reports(system_nodes_reach_every_zone, "eks", {"cluster.system_pool": {"machine": "m6i.large", "min_nodes": 1, "max_nodes": 1}})
        == []
    )


def test_a_permissions_boundary_of_another_account_is_refused() -> None:
    def boundary(account: str) -> dict[str, str]:
        return {"iam.permissions_boundary": f"arn:aws:iam::{account}:policy/boundary"}

    assert reports(the_boundary_is_of_the_account, "eks", boundary("111122223333")) == []
    assert reports(the_boundary_is_of_the_account, "eks", boundary("aws")) == []
    assert reports(the_boundary_is_of_the_account, "eks", boundary("444455556666")) == [
        "refused: boundary-of-another-account at iam.permissions_boundary"
    ]
