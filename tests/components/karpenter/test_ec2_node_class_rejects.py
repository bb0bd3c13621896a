"""Ec2NodeClass: refused arguments. A message names the input, its value, what is allowed and the next step. Nothing is registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from karpenter_node_class_args import KINDS, NODE_CLASS, node_class_args

from flexspot.components.karpenter.ec2_node_class import Ec2NodeClass, check_node_class

if TYPE_CHECKING:
    from component_types import Refusal, Register

BLOCK = {"reservation_kind": "capacity-block", "reservation_ids": ["cr-0a1b2c3d4e5f60718"]}


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"node_class": "L4_spot"}, "node_class (is 'L4_spot'): must be at most 253 lower-case letters, digits, inner hyphens and dots"),
        ({"ami": "ubuntu@v1"}, "ami (is 'ubuntu@v1'): must be al2023@RELEASE or bottlerocket@RELEASE, at most 30 characters"),
        ({"ami": "al2023@v20260903-" + "0" * 20}, "at most 30 characters"),
        ({"ami": "al2023@latest"}, "ami-not-pinned: Ec2NodeClass l4: ami (is al2023@latest): every release of the image would replace"),
        (
            {"ami": "bottlerocket@latest", "allow_latest_ami": False},
            "pin a release, such as al2023@v20260903 or bottlerocket@1.65.0, or set",
        ),
        ({"boot_disk_gib": 19}, "boot_disk_gib (is 19): should be at least 20"),
        ({"boot_disk_gib": 16_385}, "boot_disk_gib (is 16385): should be at most 16384"),
        ({"boot_disk_iops": 2999}, "boot_disk_iops (is 2999): should be at least 3000"),
        ({"boot_disk_iops": 16_001}, "boot_disk_iops (is 16001): should be at most 16000"),
        ({"boot_disk_throughput_mib": 124}, "boot_disk_throughput_mib (is 124): should be at least 125"),
        ({"boot_disk_throughput_mib": 1001}, "boot_disk_throughput_mib (is 1001): should be at most 1000"),
        ({"boot_disk_gib": 20, "boot_disk_iops": 10_001}, "l4: boot_disk_iops is above 500 for each GiB; raise boot_disk_gib"),
        ({"boot_disk_iops": 3000, "boot_disk_throughput_mib": 751}, "l4: boot_disk_throughput_mib is above a quarter of boot_disk_iops"),
        ({"efa_interfaces": -1}, "efa_interfaces (is -1): must be the machine's number of EFA cards, at most 149 without the"),
        ({"efa_first_card": 1}, "efa_first_card (is 1): must be a network card's number, from 0, of a machine with efa_interfaces"),
        ({"efa_interfaces": 4, "efa_first_card": -1}, "efa_first_card (is -1): must be a network card's number, from 0"),
        ({"reservation_kind": "future"}, "reservation_kind (is future): is not a kind of reservation; use on-demand or capacity-block"),
        (
            {"reservation_ids": ["cr-0a1b2c3d4e5f60718"], "reservation_tags": {"purpose": "training"}},
            "reservation_ids (is cr-0a1b2c3d4e5f60718): cannot be combined with reservation_tags; leave one of the two out",
        ),
        ({"reservation_ids": ["p5-block"]}, "reservation_ids (is 'p5-block'): must be the id of a capacity reservation"),
        (
            {"reservation_tags": {"purpose": ""}},
            "reservation_tags (is 'purpose': ''): neither key nor value may be empty; write '*' for any value",
        ),
        ({"reservation_tags": {"": "x"}}, "reservation_tags (is '': 'x'): neither key nor value may be empty"),
        ({"reservation_kind": "capacity-block"}, "reservation_kind (is capacity-block): needs a reservation"),
        (
            BLOCK,
            "capacity-block-without-zone: Ec2NodeClass l4: zones (is []): must be one zone, because a capacity block is in exactly one",
        ),
        ({**BLOCK, "zones": ["us-east-1a", "us-east-1b"]}, "zones (is us-east-1a, us-east-1b): must be one zone, because a capacity block"),
    ],
)
def test_invalid_arguments_are_refused_before_anything_is_registered(change: dict[str, Any], problem: str, refusal: Refusal) -> None:
    assert problem in refusal(Ec2NodeClass, "l4", node_class_args(**change))


@pytest.mark.parametrize(
    "key",
    [
        "",
        "eks:eks-cluster-name",
        "kubernetes.io/cluster/platform",
        "karpenter.sh/nodepool",
        "karpenter.sh/nodeclaim",
        "karpenter.k8s.aws/ec2nodeclass",
        "aws:createdBy",
    ],
)
def test_tags_that_karpenter_or_aws_set_are_refused(key: str) -> None:
    with pytest.raises(ValueError, match=r"Ec2NodeClass l4: tags \(is .*\): must not be empty, nor a key that .*; leave it out") as error:
        check_node_class("l4", node_class_args(tags={"owner": "ann", key: "x"}))

    assert repr(key) in str(error.value)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_node_class_that_the_platform_creates_is_accepted(kind: str, register: Register) -> None:
    registered = register(lambda: Ec2NodeClass("l4", node_class_args(**KINDS[kind])))

    assert len(registered.of(NODE_CLASS)) == 1


@pytest.mark.parametrize(
    "edge", [{"boot_disk_gib": 20, "boot_disk_iops": 10_000}, {"boot_disk_iops": 3000, "boot_disk_throughput_mib": 750}]
)
def test_values_at_the_limits_of_others_are_accepted(edge: dict[str, Any], register: Register) -> None:
    registered = register(lambda: Ec2NodeClass("l4", node_class_args(**edge)))

    assert len(registered.of(NODE_CLASS)) == 1
