"""Versions that do not go together are refused, and those that nobody here knows are warned of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from resolved_fixtures import plan_of, told

from flexspot.capacity.plan.checks.versions import (
    addons_are_known_for_the_version,
    addons_are_not_too_old,
    gke_has_what_is_used,
    gke_version_stays_on_offer,
    jobset_is_the_one_that_is_rendered_for,
    karpenter_works_with_the_version,
    kube_proxy_follows_the_cluster,
    kueue_works_with_the_version,
    load_balancer_controller_has_its_policy,
)

if TYPE_CHECKING:
    from flexspot.capacity.plan.checks import Check

INSTALLED = {"install": True}
OF_BALANCER = "load-balancer-controller-of-another-minor at controllers.load_balancer_controller.version"
IMAGES = {"1.33": "al2023@v20260903", "1.36": "al2023@v20260903", "1.37": "al2023@v20261112", "1.32": "al2023@v20260903"}


def on(version: str, **others: Any) -> dict[str, Any]:
    return {"cluster.version": version, "cluster.ami": IMAGES.get(version, "al2023@v20260903"), **others}


@pytest.mark.parametrize(
    "pins,verdicts",
    [
        ({"aws-ebs-csi-driver": "v1.57.9-eksbuild.1"}, ["refused: addon-too-old at cluster.addon_versions.aws-ebs-csi-driver"]),
        ({"aws-ebs-csi-driver": "v1.58.0-eksbuild.1"}, []),
        ({"aws-ebs-csi-driver": "default", "vpc-cni": "default"}, []),
        ({"vpc-cni": "v1.13.4-eksbuild.1"}, ["refused: addon-too-old at cluster.addon_versions.vpc-cni"]),
        ({"vpc-cni": "v1.99.0-eksbuild.1"}, []),
    ],
)
def test_an_addon_that_cannot_do_what_the_platform_asks_is_refused(pins: dict[str, str], verdicts: list[str]) -> None:
    assert told(addons_are_not_too_old, "eks", {"cluster.addon_versions": pins}) == verdicts


@pytest.mark.parametrize(
    "kube_proxy,verdicts",
    [
        ("v1.36.0-eksbuild.14", ["refused: kube-proxy-skew at cluster.addon_versions.kube-proxy"]),
        ("v1.35.3-eksbuild.29", []),
        ("v1.34.6-eksbuild.13", ["warned: kube-proxy-behind at cluster.addon_versions.kube-proxy"]),
        ("v1.32.13-eksbuild.5", ["warned: kube-proxy-behind at cluster.addon_versions.kube-proxy"]),
        ("v1.31.14-eksbuild.9", ["refused: kube-proxy-skew at cluster.addon_versions.kube-proxy"]),
        ("default", []),
    ],
)
def test_kube_proxy_is_never_newer_than_the_cluster_nor_far_behind(kube_proxy: str, verdicts: list[str]) -> None:
    """Kubernetes' version skew policy: never newer than the API server, up to three minor versions older."""
    assert told(kube_proxy_follows_the_cluster, "eks", on("1.35", **{"cluster.addon_versions": {"kube-proxy": kube_proxy}})) == verdicts


def test_a_version_without_known_addons_is_warned_of_unless_they_are_named() -> None:
    pins = {"kube-proxy": "v1.32.13-eksbuild.5", "coredns": "v1.11.4-eksbuild.40", "vpc-cni": "default"}

    assert told(addons_are_known_for_the_version, "eks", on("1.32")) == ["warned: addons-not-known at cluster.version"]
    assert told(addons_are_known_for_the_version, "eks", on("1.32", **{"cluster.addon_versions": pins})) == []
    assert told(addons_are_known_for_the_version, "eks", on("1.33")) == []


@pytest.mark.parametrize(
    "version,karpenter,verdicts",
    [
        ("1.35", None, []),
        ("1.36", None, []),
        ("1.37", None, ["refused: karpenter-of-another-version at cluster.version"]),
        ("1.36", "1.12.0", ["refused: karpenter-of-another-version at controllers.karpenter.version"]),
        ("1.36", "1.13.0", ["warned: karpenter-of-another-minor at controllers.karpenter.version"]),
        ("1.36", "1.14.2", []),
        ("1.37", "1.15.0", ["warned: karpenter-not-known at controllers.karpenter.version"]),
        ("1.35", "1.8.2", ["warned: karpenter-not-known at controllers.karpenter.version"]),
    ],
)
def test_karpenter_works_with_the_clusters_version(version: str, karpenter: str | None, verdicts: list[str]) -> None:
    changes = on(version) | ({} if karpenter is None else {"controllers": {"karpenter": {"version": karpenter}}})

    assert told(karpenter_works_with_the_version, "eks", changes) == verdicts


KUEUE, JOBSET, BALANCER = kueue_works_with_the_version, jobset_is_the_one_that_is_rendered_for, load_balancer_controller_has_its_policy


@pytest.mark.parametrize(
    "check,cloud,wanted,verdicts",
    [
        (KUEUE, "eks", {"kueue": {"version": "0.14.9"}}, ["refused: kueue-too-old at controllers.kueue.version"]),
        (KUEUE, "gke", {"kueue": {"version": "0.18.0"}}, ["warned: kueue-of-another-minor at controllers.kueue.version"]),
        (KUEUE, "gke", {"kueue": {"version": "0.19.1"}}, []),
        (KUEUE, "eks", {"kueue": {"version": "0.20.0"}}, ["warned: kueue-of-another-minor at controllers.kueue.version"]),
        (JOBSET, "eks", {"jobset": {"install": True, "version": "0.12.3"}}, []),
        (JOBSET, "gke", {"jobset": {"version": "0.13.0"}}, []),
        (JOBSET, "gke", {"jobset": INSTALLED | {"version": "0.13.0"}}, ["warned: jobset-of-another-minor at controllers.jobset.version"]),
        (BALANCER, "eks", {"load_balancer_controller": INSTALLED | {"version": "3.2.9"}}, []),
        (BALANCER, "eks", {"load_balancer_controller": {"install": False, "version": "3.4.2"}}, []),
        (BALANCER, "eks", {"load_balancer_controller": INSTALLED | {"version": "3.4.2"}}, [f"warned: {OF_BALANCER}"]),
    ],
)
def test_controllers_are_of_the_version_that_objects_and_roles_are_written_for(
    check: Check, cloud: str, wanted: dict[str, Any], verdicts: list[str]
) -> None:
    assert told(check, cloud, {"controllers": wanted}) == verdicts
    assert told(check, cloud) == []


def test_of_a_cluster_that_is_there_already_no_version_is_judged() -> None:
    changes = on("1.37", **{"cluster.existing": "theirs", "cluster.addon_versions": {"kube-proxy": "v1.36.0-eksbuild.14"}})

    for check in (kube_proxy_follows_the_cluster, addons_are_known_for_the_version, karpenter_works_with_the_version):
        assert told(check, "eks", changes) == []


def test_pins_of_the_settings_come_before_the_tables() -> None:
    pins = {"vpc-cni": "v1.22.4-eksbuild.3", "coredns": "default", "eks-pod-identity-agent": "v1.3.10-eksbuild.3"}
    versions = plan_of("eks", on("1.35", **{"cluster.addon_versions": pins})).versions

    assert versions.addons == {
        "eks-pod-identity-agent": "v1.3.10-eksbuild.3",
        "kube-proxy": "v1.35.3-eksbuild.13",
        "vpc-cni": "v1.22.4-eksbuild.3",
    }


@pytest.mark.parametrize(
    "version,ami,release",
    [
        ("1.35", "al2023@v20260903", "1.35.7-20260903"),
        ("1.34", "al2023@v20260903", "1.34.10-20260903"),
        ("1.33", "al2023@v20260903", None),
        ("1.35", "bottlerocket@1.65.0", None),
    ],
)
def test_the_system_nodes_have_the_release_of_the_alias_where_eks_name_for_it_is_known(version: str, ami: str, release: str | None) -> None:
    assert plan_of("eks", {"cluster.version": version, "cluster.ami": ami}).versions.system_release == release


def test_charts_are_those_that_a_stack_may_install() -> None:
    plain = plan_of("eks", {}).versions.charts
    assert plain == {"karpenter": "1.14.1", "nvidia-device-plugin": "0.19.3", "kueue": "0.19.0", "dcgm-exporter": "4.8.4"}
    assert set(plan_of("eks", {"cluster.ami": "bottlerocket@1.65.0"}).versions.charts) == {"karpenter", "kueue", "dcgm-exporter"}
    assert plan_of("gke", {"controllers": {"kueue": {"version": "0.19.1"}}}).versions.charts == {"kueue": "0.19.1"}
    assert plan_of("gke", {"queueing": {"existing_kueue": True}}).versions.charts == {}


GRACE = {"pools.0.shutdown_grace_seconds": 120}
FLEX = {"pools.0.capacity_type": "flex-start"}
UNMEASURED = {"observability": {"managed_prometheus": False}}


@pytest.mark.parametrize(
    "version,options,verdicts",
    [
        ("1.34", GRACE, ["refused: gke-too-old at cluster.min_version"]),
        ("1.34.9-gke.9999999", GRACE, ["refused: gke-too-old at cluster.min_version"]),
        ("1.35.0-gke.1170999", GRACE, ["refused: gke-too-old at cluster.min_version"]),
        ("1.35.0-gke.1171000", GRACE, []),
        ("1.35.0", GRACE, []),
        ("1.35", GRACE, []),
        ("1.36", GRACE, []),
        (None, GRACE, ["warned: gke-version-not-said at cluster.min_version"]),
        ("1.32.2-gke.1", FLEX, ["refused: gke-too-old at cluster.min_version"]),
        ("1.32", FLEX, []),
        (None, FLEX, []),
        ("1.27", UNMEASURED | {"pools.0.capacity_type": "queued"}, ["refused: gke-too-old at cluster.min_version"]),
        ("1.28", UNMEASURED | {"pools.0.capacity_type": "queued"}, []),
        ("1.29", UNMEASURED, []),
        ("1.31", {}, ["refused: gke-too-old at cluster.min_version"]),
        ("1.32", {}, []),
    ],
)
def test_what_a_pool_of_gke_asks_for_has_a_first_version(version: str | None, options: dict[str, Any], verdicts: list[str]) -> None:
    """A version that is not whole is the newest release of its kind, so it is too old only when all of them are."""
    assert told(gke_has_what_is_used, "gke", options | {"cluster.min_version": version}) == verdicts


@pytest.mark.parametrize("version,warned", [("1.35.0-gke.1171000", True), ("1.35.2", True), ("1.35", False), (None, False)])
def test_a_version_that_names_one_patch_is_warned_of(version: str | None, warned: object) -> None:
    verdicts = ["warned: gke-release-leaves-the-channel at cluster.min_version"] if warned else []

    assert told(gke_version_stays_on_offer, "gke", {"cluster.min_version": version}) == verdicts


def test_the_version_of_a_cluster_that_is_there_already_is_not_known() -> None:
    there = GRACE | {"cluster.min_version": "1.30.1-gke.1", "cluster.existing": "theirs"}

    assert told(gke_has_what_is_used, "gke", there) == []
    assert told(gke_version_stays_on_offer, "gke", there) == []


def test_kueue_needs_a_version_of_gke_too() -> None:
    assert told(kueue_works_with_the_version, "gke", {"cluster.min_version": "1.28"}) == [
        "refused: kueue-needs-newer-kubernetes at cluster.min_version"
    ]
    assert told(kueue_works_with_the_version, "gke", {"cluster.min_version": "1.29"}) == []
