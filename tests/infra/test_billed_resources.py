"""The plan's billed items, compared with the resources that the program declares."""

from __future__ import annotations

from typing import Any

import pytest
from program_declarations import Declarations, as_shipped, plan_of

from flexspot.capacity.catalog.price_book import ServiceItem

pytestmark = pytest.mark.slow

both_on_gke = pytest.mark.parametrize("stack", ["dev-gke", "prod-gke"])
both_on_eks = pytest.mark.parametrize("stack", ["dev-eks", "prod-eks"])


def billed(stack: str, item: ServiceItem) -> list[int]:
    """Return the permanent amounts of an item, by part of the plan."""
    return [each.least for each in plan_of(stack).spending.services if each.item is item]


def charged(charges: Any) -> dict[str, int]:
    return {each.item.value: each.amount for each in charges}


def node_classes(declarations: Declarations) -> dict[str, dict[str, Any]]:
    """Return the disk of each node class by name."""
    made = declarations.inputs_of("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass")
    return {each["metadata"]["name"]: each["spec"]["blockDeviceMappings"][0]["ebs"] for each in made}


def as_charges(disk: dict[str, Any]) -> dict[str, int]:
    """Return AWS's charges for a gp3 volume: its GiB, and operations and throughput beyond the included 3,000 and 125 MiB/s."""
    gib = int(str(disk["volumeSize"]).removesuffix("Gi"))
    beyond = {"gp3-iops": disk.get("iops", 3000) - 3000, "gp3-mibps": disk.get("throughput", 125) - 125}
    return {"gp3-storage": gib} | {item: amount for item, amount in beyond.items() if amount}


@both_on_eks
def test_eks_is_billed_for_its_gateways_addresses_endpoints_key_and_cluster(stack: str) -> None:
    declarations = as_shipped(stack)

    assert billed(stack, ServiceItem.CLUSTER) == [len(declarations.of("aws:eks/cluster:Cluster"))]
    assert billed(stack, ServiceItem.NAT_GATEWAY) == [len(declarations.of("aws:ec2/natGateway:NatGateway"))]
    assert billed(stack, ServiceItem.PUBLIC_ADDRESS) == [len(declarations.of("aws:ec2/eip:Eip"))]
    assert billed(stack, ServiceItem.KMS_KEY) == [len(declarations.of("aws:kms/key:Key"))]
    endpoints = [each for each in declarations.inputs_of("aws:ec2/vpcEndpoint:VpcEndpoint") if each["vpcEndpointType"] == "Interface"]
    # Zones of nodes have one public subnet each. The control plane's subnets are separate.
    zones = sum(1 for each in declarations.inputs_of("aws:ec2/subnet:Subnet") if "kubernetes.io/role/elb" in each["tags"])
    assert billed(stack, ServiceItem.INTERFACE_ENDPOINT) == ([len(endpoints) * zones] if endpoints else [])


@both_on_eks
def test_eks_nodes_have_the_billed_disks(stack: str) -> None:
    declarations, spending = as_shipped(stack), plan_of(stack).spending
    [group] = declarations.inputs_of("aws:eks/nodeGroup:NodeGroup")
    [template] = declarations.inputs_of("aws:ec2/launchTemplate:LaunchTemplate")
    classes = node_classes(declarations)

    assert spending.system_nodes is not None
    assert spending.other_work is not None
    assert template["instanceType"] == spending.system_nodes.machine
    assert (group["scalingConfig"]["minSize"], group["scalingConfig"]["maxSize"]) == (
        spending.system_nodes.min_nodes,
        spending.system_nodes.max_nodes,
    )
    assert charged(spending.system_nodes.charges) == {"gp3-storage": template["blockDeviceMappings"][0]["ebs"]["volumeSize"]}
    assert {each.pool: charged(each.charges) for each in spending.disks} == {
        pool.name: as_charges(classes[pool.name]) for pool in plan_of(stack).pools
    }
    [other] = [disk for name, disk in classes.items() if name not in {pool.name for pool in plan_of(stack).pools}]
    assert charged(spending.other_work.charges) == as_charges(other)


@both_on_gke
def test_gke_is_billed_for_its_cluster_its_nat_and_its_nodes_disks(stack: str) -> None:
    declarations, spending = as_shipped(stack), plan_of(stack).spending
    pools = {each["name"]: each for each in declarations.inputs_of("gcp:container/nodePool:NodePool")}
    system = pools.pop("system")
    [cluster] = declarations.inputs_of("gcp:container/cluster:Cluster")

    assert billed(stack, ServiceItem.CLUSTER) == [1]
    assert len(billed(stack, ServiceItem.NAT_NODE)) == len(declarations.of("gcp:compute/routerNat:RouterNat"))
    assert spending.system_nodes is not None
    assert spending.other_work is not None
    assert system["nodeConfig"]["machineType"] == spending.system_nodes.machine
    assert (system["autoscaling"]["totalMinNodeCount"], system["autoscaling"]["totalMaxNodeCount"]) == (
        spending.system_nodes.min_nodes,
        spending.system_nodes.max_nodes,
    )
    of_nodes = {name: {pool["nodeConfig"]["diskType"]: pool["nodeConfig"]["diskSizeGb"]} for name, pool in pools.items()}
    assert {each.pool: charged(each.charges) for each in spending.disks} == of_nodes
    assert charged(spending.system_nodes.charges) == {system["nodeConfig"]["diskType"]: system["nodeConfig"]["diskSizeGb"]}
    defaults = cluster["clusterAutoscaling"]["autoProvisioningDefaults"]
    assert charged(spending.other_work.charges) == {"pd-balanced": defaults["diskSize"]}


@pytest.mark.parametrize("stack", ["dev-gke", "dev-eks"])
def test_the_month_is_declared_with_its_budget_and_the_local_stack_costs_nothing(stack: str) -> None:
    [declared] = as_shipped(stack).inputs_of("flexspot:index:MonthlyCost")

    assert (declared["environment"]["owner"], declared["environment"]["budget_usd"]) == ("dev", "4000")
    assert declared["teams"] == []
    assert as_shipped("local").of("flexspot:index:MonthlyCost") == []
