"""Checks of versions: incompatible ones are refused, and unknown ones get a warning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from resolved_fixtures import plan_of, reports

from flexspot.capacity.plan.checks.versions import (
    addons_are_known_for_the_version,
    addons_are_not_too_old,
    gke_has_the_features,
    gke_keeps_offering_the_version,
    jobset_has_the_rendered_version,
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
def test_an_addon_older_than_the_platform_requires_is_refused(pins: dict[str, str], verdicts: list[str]) -> None:
    assert reports(addons_are_not_too_old, "eks", {"cluster.addon_versions": pins}) == verdicts


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
    assert reports(kube_proxy_follows_the_cluster, "eks", on("1.35", **{"cluster.addon_versions": {"kube-proxy": kube_proxy}})) == verdicts


def test_a_version_without_known_addons_gets_a_warning_unless_they_are_named() -> None:
    pins = {"kube-proxy": "v1.32.13-eksbuild.5", "coredns": "v1.11.4-eksbuild.40", "vpc-cni": "default"}

    assert reports(addons_are_known_for_the_version, "eks", on("1.32")) == ["warned: addons-not-known at cluster.version"]
    assert reports(addons_are_known_for_the_version, "eks", on("1.32", **{"cluster.addon_versions": pins})) == []
    assert reports(addons_are_known_for_the_version, "eks", on("1.33")) == []


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

    assert reports(karpenter_works_with_the_version, "eks", changes) == verdicts


KUEUE, JOBSET, BALANCER = kueue_works_with_the_version, jobset_has_the_rendered_version, load_balancer_controller_has_its_policy


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
def test_controllers_of_another_minor_version_are_reported(check: Check, cloud: str, wanted: dict[str, Any], verdicts: list[str]) -> None:
    assert reports(check, cloud, {"controllers": wanted}) == verdicts
    assert reports(check, cloud) == []


def test_versions_of_an_existing_cluster_are_not_checked() -> None:
    changes = on("1.37", **{"cluster.existing": "theirs", "cluster.addon_versions": {"kube-proxy": "v1.36.0-eksbuild.14"}})

    for check in (kube_proxy_follows_the_cluster, addons_are_known_for_the_version, karpenter_works_with_the_version):
        assert reports(check, "eks", changes) == []


def test_versions_in_the_settings_take_precedence_over_the_tables() -> None:
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
def test_the_system_nodes_have_the_release_of_the_alias_if_eks_name_for_it_is_known(version: str, ami: str, release: str | None) -> None:
    assert plan_of("eks", {"cluster.version": version, "cluster.ami": ami}).versions.system_release == release


def test_a_plan_has_the_charts_that_the_stack_installs() -> None:
    plain = plan_of("eks", {}).versions.charts
    assert plain == {"karpenter": "1.14.1", "nvidia-device-plugin": "0.19.3", "kueue": "0.19.2", "dcgm-exporter": "4.8.4"}
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
def test_a_gke_version_without_a_used_feature_is_refused(version: str | None, options: dict[str, Any], verdicts: list[str]) -> None:
    """A version without a patch is the newest release of its kind, so it is too old only if all of them are."""
    assert reports(gke_has_the_features, "gke", options | {"cluster.min_version": version}) == verdicts


@pytest.mark.parametrize("version,warned", [("1.35.0-gke.1171000", True), ("1.35.2", True), ("1.35", False), (None, False)])
def test_a_patch_version_of_gke_gets_a_warning(version: str | None, warned: object) -> None:
    verdicts = ["warned: gke-release-leaves-the-channel at cluster.min_version"] if warned else []

    assert reports(gke_keeps_offering_the_version, "gke", {"cluster.min_version": version}) == verdicts


def test_the_version_of_an_existing_gke_cluster_is_not_checked() -> None:
    there = GRACE | {"cluster.min_version": "1.30.1-gke.1", "cluster.existing": "theirs"}

    assert reports(gke_has_the_features, "gke", there) == []
    assert reports(gke_keeps_offering_the_version, "gke", there) == []


def test_kueue_needs_a_version_of_gke_too() -> None:
    assert reports(kueue_works_with_the_version, "gke", {"cluster.min_version": "1.28"}) == [
        "refused: kueue-needs-newer-kubernetes at cluster.min_version"
    ]
    assert reports(kueue_works_with_the_version, "gke", {"cluster.min_version": "1.29"}) == []
