"""Ec2NodeClass: a pinned image, encrypted disks, and the network, reservations and tags of the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from karpenter_node_class_args import KEY, NODE_CLASS, node_class_args

from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.components.karpenter.ec2_node_class import Ec2NodeClass, ec2_node_class_ref

if TYPE_CHECKING:
    from component_types import Outputs, Register


def spec(register: Register, **changes: Any) -> dict[str, Any]:
    [made] = register(lambda: Ec2NodeClass("l4", node_class_args(**changes))).of(NODE_CLASS)
    return made["spec"]


def test_a_node_class_is_pinned_private_encrypted_and_hides_its_credentials_from_pods(register: Register) -> None:
    [made] = register(lambda: Ec2NodeClass("l4", node_class_args())).of(NODE_CLASS)

    assert made["apiVersion"] == "karpenter.k8s.aws/v1"
    assert made["metadata"] == {"name": "l4-spot", "labels": {"flexspot.dev/owner": "ml-platform"}}
    assert made["spec"] == {
        "amiSelectorTerms": [{"alias": "al2023@v20260903"}],
        "role": "platform-nodes",
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "platform"}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "platform"}}],
        "blockDeviceMappings": [
            {
                "deviceName": "/dev/xvda",
                "ebs": {
                    "volumeType": "gp3",
                    "volumeSize": "200Gi",
                    "iops": 6000,
                    "throughput": 500,
                    "encrypted": True,
                    "deleteOnTermination": True,
                },
            }
        ],
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1,
            "httpTokens": "required",
        },
        "detailedMonitoring": False,
        "associatePublicIPAddress": False,
        # The last one is not given by the caller: without it the EBS driver's policy does not allow attaching volumes.
        "tags": {"environment": "dev", "owner": "ml-platform", "ebs.csi.aws.com/cluster-name": "platform"},
    }


def test_bottlerocket_has_its_system_on_a_small_volume_and_images_and_pods_on_a_second_one(register: Register) -> None:
    system, data = spec(register, ami="bottlerocket@1.65.0", boot_disk_gib=500, kms_key=KEY)["blockDeviceMappings"]

    assert (system["deviceName"], data["deviceName"]) == ("/dev/xvda", "/dev/xvdb")
    assert system["ebs"] == {"volumeType": "gp3", "volumeSize": "4Gi", "encrypted": True, "deleteOnTermination": True, "kmsKeyID": KEY}
    assert data["ebs"] == system["ebs"] | {"volumeSize": "500Gi", "iops": 6000, "throughput": 500}


def test_disks_and_the_machines_own_nvme_can_be_set(register: Register) -> None:
    made = spec(register, boot_disk_gib=1000, boot_disk_iops=16_000, boot_disk_throughput_mib=1000, local_nvme=True)

    [root] = made["blockDeviceMappings"]
    assert (root["ebs"]["volumeSize"], root["ebs"]["iops"], root["ebs"]["throughput"]) == ("1000Gi", 16_000, 1000)
    assert made["instanceStorePolicy"] == "RAID0"


def test_the_root_volume_is_small_if_the_machines_own_disks_have_images_and_scratch_data(register: Register) -> None:
    [root] = spec(register, local_nvme=True)["blockDeviceMappings"]

    assert (root["ebs"]["volumeSize"], root["ebs"]["iops"], root["ebs"]["throughput"]) == ("30Gi", 3000, 125)


@pytest.mark.parametrize(
    "given,volume",
    [
        ({"boot_disk_throughput_mib": 1000, "local_nvme": True}, ("30Gi", 4000, 1000)),
        ({"boot_disk_iops": 16_000, "local_nvme": True}, ("32Gi", 16_000, 125)),
        ({"boot_disk_iops": 3000}, ("200Gi", 3000, 500)),
        ({"boot_disk_gib": 20, "local_nvme": True}, ("20Gi", 3000, 125)),
        ({"boot_disk_gib": 20}, ("20Gi", 6000, 500)),
    ],
)
def test_values_of_a_volume_that_are_not_given_adapt_to_those_that_are(
    given: dict[str, Any], volume: tuple[str, int, int], register: Register
) -> None:
    [root] = spec(register, **given)["blockDeviceMappings"]

    assert (root["ebs"]["volumeSize"], root["ebs"]["iops"], root["ebs"]["throughput"]) == volume


@pytest.mark.parametrize("machine", [each for each in machines_of(Vendor.AWS).values() if each.efa_interfaces], ids=lambda each: each.name)
def test_every_machine_with_efa_has_an_efa_interface_on_each_card_and_one_address(machine: Any, register: Register) -> None:
    card, count = machine.efa_first_card, machine.efa_interfaces
    made = spec(register, efa_interfaces=count, efa_first_card=card, placement_group="platform-h100")

    first, *efa = made["networkInterfaces"]
    assert first == {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
    assert [each["networkCardIndex"] for each in efa] == list(range(card, card + count))
    assert [each["deviceIndex"] for each in efa] == [0 if card else 1] + [0] * (count - 1)
    assert {each["interfaceType"] for each in efa} == {"efa-only"}
    assert "associatePublicIPAddress" not in made, "EC2 refuses the question for an instance with several interfaces"
    assert made["placementGroupSelector"] == {"name": "platform-h100"}


@pytest.mark.parametrize(
    "change,terms",
    [
        (
            {"reservation_ids": ["cr-0b1b2c3d4e5f60718", "cr-0a1b2c3d4e5f60718", "cr-0b1b2c3d4e5f60718"]},
            [{"id": "cr-0a1b2c3d4e5f60718"}, {"id": "cr-0b1b2c3d4e5f60718"}],
        ),
        ({"reservation_tags": {"purpose": "training", "cell": "*"}}, [{"tags": {"cell": "*", "purpose": "training"}}]),
        (
            {"reservation_kind": "capacity-block", "reservation_tags": {"block": "2026-12"}, "zones": ["us-east-1a"]},
            [{"tags": {"block": "2026-12"}}],
        ),
    ],
)
def test_reservations_are_named_by_id_or_by_all_their_tags(change: dict[str, Any], terms: list[dict[str, Any]], register: Register) -> None:
    assert spec(register, **change)["capacityReservationSelectorTerms"] == terms


def test_an_existing_network_is_named_by_ids_in_any_order(register: Register) -> None:
    ids: dict[str, Any] = {"subnet_ids": ["subnet-0b1c2d3e", "subnet-0a1b2c3d"], "security_group_ids": ["sg-2", "sg-1"]}
    made = spec(register, **ids)

    assert made["subnetSelectorTerms"] == [{"id": "subnet-0a1b2c3d"}, {"id": "subnet-0b1c2d3e"}]
    assert made["securityGroupSelectorTerms"] == [{"id": "sg-1"}, {"id": "sg-2"}]
    assert made == spec(register, **{argument: list(reversed(values)) for argument, values in ids.items()})


def test_nodes_can_have_a_security_group_in_addition_to_discovered_or_named_ones(register: Register) -> None:
    more = {"more_security_group_ids": ["sg-efa"]}

    assert spec(register, **more)["securityGroupSelectorTerms"][1:] == [{"id": "sg-efa"}]
    assert spec(register, security_group_ids=["sg-1"], **more)["securityGroupSelectorTerms"] == [{"id": "sg-1"}, {"id": "sg-efa"}]


def test_a_role_and_a_security_group_may_be_unknown_in_the_preview(register: Register) -> None:
    later = {"node_role": pulumi.Output.from_input("made-role"), "security_group_ids": [pulumi.Output.from_input("sg-made")]}
    made = spec(register, **later)

    assert made["role"] == "made-role"
    assert made["securityGroupSelectorTerms"] == [{"id": "sg-made"}]


def test_pools_refer_to_the_object_by_its_name(outputs: Outputs) -> None:
    assert outputs(lambda: Ec2NodeClass("l4", node_class_args())) == {"name": "l4-spot"}
    assert ec2_node_class_ref("l4-spot") == {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "l4-spot"}
