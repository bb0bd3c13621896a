"""A Kubernetes upgrade on EKS: its changes to a shipped stack, and the order in which the engine applies them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import pytest
from eks_declarations import NODE_CLASS, NODE_POOL, RELEASE, SYSTEM_NODES
from program_declarations import declared, shipped

if TYPE_CHECKING:
    from program_declarations import Declarations

pytestmark = pytest.mark.slow

CLUSTER = "aws:eks/cluster:Cluster cluster-cluster"
ADDON = "aws:eks/addon:Addon cluster-"
KUBE_PROXY, VPC_CNI, COREDNS = (f"{ADDON}{name}" for name in ("kube-proxy", "vpc-cni", "coredns"))


@functools.cache
def at(version: str) -> Declarations:
    """Return the development stack on a Kubernetes version, with an image for both versions."""
    cluster = shipped("dev-eks")["cluster"] | {"version": version, "ami": "al2023@v20260903"}
    return declared("dev-eks", shipped("dev-eks", cluster=cluster))


def test_an_upgrade_also_upgrades_nodes_and_addons() -> None:
    old, new = at("1.34").made, at("1.35").made
    assert set(old) == set(new), "an upgrade makes and deletes nothing"
    changed = {
        name: {key: (old[name].inputs.get(key), value) for key, value in each.inputs.items() if old[name].inputs.get(key) != value}
        for name, each in new.items()
        if old[name].inputs != each.inputs and not name.startswith("flexspot:")
    }
    assert changed == {
        CLUSTER: {"version": ("1.34", "1.35")},
        SYSTEM_NODES: {"version": ("1.34", "1.35"), "releaseVersion": ("1.34.10-20260903", "1.35.7-20260903")},
        KUBE_PROXY: {"addonVersion": ("v1.34.6-eksbuild.13", "v1.35.3-eksbuild.13")},
        COREDNS: {"addonVersion": ("v1.13.2-eksbuild.11", "v1.14.3-eksbuild.3")},
    }


def test_the_control_plane_is_upgraded_first() -> None:
    """kube-proxy and kubelets may be older than the API server and never newer (Kubernetes' version skew policy)."""
    after = at("1.35")
    for name in (SYSTEM_NODES, *(each for each in after.made if each.startswith(ADDON))):
        assert CLUSTER in after.waits_for(name), name


def test_network_addons_are_upgraded_before_nodes_and_the_rest_after_them() -> None:
    after = at("1.35")

    assert {KUBE_PROXY, VPC_CNI} <= after.waits_for(SYSTEM_NODES)
    assert not after.waits_for(KUBE_PROXY) & {SYSTEM_NODES, COREDNS}
    assert SYSTEM_NODES in after.waits_for(COREDNS)


def test_karpenter_and_its_node_classes_are_upgraded_last() -> None:
    """A new image or Karpenter version starts nodes only after the controllers and add-ons are there."""
    after = at("1.35")
    addons = {name for name in after.made if name.startswith(ADDON)}
    karpenter = f"{RELEASE} karpenter-release"

    assert {CLUSTER, SYSTEM_NODES, *addons} <= after.waits_for(karpenter)
    for each in (*after.of(NODE_CLASS), *after.of(NODE_POOL)):
        assert {karpenter, SYSTEM_NODES} <= after.waits_for(f"{each.type} {each.name}"), each.name


def test_versions_in_the_stack_file_apply_to_addons_and_charts() -> None:
    cluster = shipped("prod-eks")["cluster"] | {"addon_versions": {"vpc-cni": "v1.22.4-eksbuild.3", "coredns": "default"}}
    controllers = {
        "kueue": {"version": "0.19.1"},
        "nvidia_device_plugin": {"version": "0.20.0"},
        "efa_device_plugin": {"version": "v0.5.32"},
        "load_balancer_controller": {"install": True, "version": "3.2.9"},
    }
    made = declared("prod-eks", shipped("prod-eks", cluster=cluster, controllers=controllers)).made

    assert made[VPC_CNI].inputs["addonVersion"] == "v1.22.4-eksbuild.3"
    assert "addonVersion" not in made[COREDNS].inputs
    assert made[KUBE_PROXY].inputs["addonVersion"] == "v1.35.3-eksbuild.13"
    charts = {each.inputs["chart"].rpartition("/")[2]: each.inputs["version"] for each in made.values() if each.type == RELEASE}
    assert charts == {
        "karpenter-crd": "1.14.1",
        "karpenter": "1.14.1",
        "kueue": "0.19.1",
        "nvidia-device-plugin": "0.20.0",
        "aws-efa-k8s-device-plugin": "v0.5.32",
        "aws-load-balancer-controller": "3.2.9",
        "dcgm-exporter": "4.8.4",
    }
