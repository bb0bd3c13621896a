"""What EKS's own options of a pool must agree with."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from resolved_fixtures import told

from capacity.plan.checks.places import the_efa_plugins_image_can_be_pulled
from capacity.plan.checks.pool_options import (
    a_placement_group_is_in_one_zone,
    efa_is_on_machines_that_have_it,
    nodes_with_efa_reach_one_another,
    user_data_is_of_the_images_form,
)
from capacity.settings.eks_nodes import EksNodes


def test_the_machines_of_a_pool_with_efa_have_the_same_network_cards() -> None:
    mixed: dict[str, Any] = {"pools.0.efa": True, "pools.0.machine": "g6.8xlarge", "pools.0.alternatives": ["g6.16xlarge", "g6.4xlarge"]}

    assert told(efa_is_on_machines_that_have_it, "eks", mixed) == ["refused: mixed-efa-in-pool at pools.0.alternatives.1"]
    assert told(efa_is_on_machines_that_have_it, "eks", mixed | {"pools.0.efa": False}) == []


def test_nodes_with_efa_are_in_one_zone_and_close_or_a_warning_says_so() -> None:
    efa: dict[str, Any] = {"pools.0.efa": True, "pools.0.machine": "g6.8xlarge"}
    one_zone = efa | {"pools.0.zones": ["us-east-1a"]}
    reserved = {"pools.0.capacity_type": "reserved", "pools.0.reservation": {"tags": {"for": "training"}}}

    assert told(nodes_with_efa_reach_one_another, "eks", efa) == ["warned: efa-over-zones at pools.0.efa"]
    assert told(nodes_with_efa_reach_one_another, "eks", one_zone) == ["warned: efa-not-placed at pools.0.efa"]
    assert told(nodes_with_efa_reach_one_another, "eks", one_zone | {"pools.0.compact_placement": True}) == []
    assert told(nodes_with_efa_reach_one_another, "eks", one_zone | reserved) == []
    assert told(nodes_with_efa_reach_one_another, "eks") == []


def test_a_placement_group_is_in_one_zone() -> None:
    compact: dict[str, Any] = {"pools.0.compact_placement": True}

    assert told(a_placement_group_is_in_one_zone, "eks", compact) == ["refused: compact-over-zones at pools.0.compact_placement"]
    assert told(a_placement_group_is_in_one_zone, "eks", compact | {"pools.0.zones": ["us-east-1a"]}) == []
    reserved = {"pools.0.capacity_type": "reserved", "pools.0.zones": ["us-east-1a"], "pools.0.reservation": {"tags": {"for": "training"}}}
    assert told(a_placement_group_is_in_one_zone, "eks", compact | reserved) == [
        "refused: compact-reservation at pools.0.compact_placement"
    ]


@pytest.mark.parametrize(
    "nodes,ami,verdicts",
    [
        (
            {"user_data": "[settings]\nmotd = 'ours'\n"},
            "al2023@v20260903",
            ["refused: user-data-of-another-form at cluster.nodes.user_data"],
        ),
        ({"user_data": "[settings]\nmotd = 'ours'\n"}, "bottlerocket@1.65.0", []),
        ({"fast_image_pull": True}, "al2023@v20260903", []),
        ({"fast_image_pull": True}, "bottlerocket@1.65.0", ["refused: al2023-alone at cluster.nodes.fast_image_pull"]),
        ({"kubelet": {"pods_per_core": 10}}, "bottlerocket@1.65.0", ["refused: al2023-alone at cluster.nodes.kubelet.pods_per_core"]),
    ],
)
def test_nodes_are_told_what_their_image_reads(nodes: dict[str, Any], ami: str, verdicts: list[str]) -> None:
    assert told(user_data_is_of_the_images_form, "eks", {"cluster.nodes": nodes, "cluster.ami": ami}) == verdicts


def test_fast_image_pull_is_nodeadms_switch_and_stands_alone() -> None:
    [told_to_nodeadm] = [yaml.safe_load(EksNodes(fast_image_pull=True).boot_data or "")]

    assert told_to_nodeadm == {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {"featureGates": {"FastImagePull": True}},
    }
    with pytest.raises(ValueError, match="fast_image_pull does not go with user_data"):
        EksNodes(fast_image_pull=True, user_data="#!/bin/sh\n")


def test_the_efa_plugins_image_is_asked_for_where_the_charts_own_cannot_be_pulled() -> None:
    check, image = the_efa_plugins_image_can_be_pulled, {"controllers.efa_device_plugin": {"image": "registry.example.com/mirror/efa"}}
    efa: dict[str, Any] = {"pools.0.efa": True, "pools.0.machine": "g6.8xlarge"}
    abroad: dict[str, Any] = efa | {"region": "cn-north-1", "zones": ["cn-north-1a", "cn-north-1b"]}

    assert told(check, "eks", efa) == []
    assert told(check, "eks", abroad) == ["refused: efa-image-of-another-partition at controllers.efa_device_plugin.image"]
    assert told(check, "eks", abroad | image) == []
    assert told(check, "eks", image) == ["warned: efa-image-not-used at controllers.efa_device_plugin.image"]
