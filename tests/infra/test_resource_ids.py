"""Ids for reading back an interrupted `up`: derived from inputs, or found in AWS if AWS assigns them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, cast

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws
from program_declarations import as_shipped

from flexspot.infra.deployment.interrupted import Identifying, NotIdentified, PendingCreate
from flexspot.infra.deployment.resource_ids import TAGGED, AwsSearch, resource_id, resource_ids

pytestmark = pytest.mark.slow

COMPONENTS = Path(__file__).resolve().parents[2] / "components" / "flexspot" / "components"
PLACE = {"account": "123456789012", "partition": "aws", "region": "us-east-1", "dns_suffix": "amazonaws.com"}
TAGS = {"Name": "dev-private-us-east-1a", "cluster": "dev"}


def client(service: str) -> Any:
    return cast("Any", boto3).client(service, region_name="us-east-1")


def searched() -> frozenset[str]:
    return AwsSearch(client).types


def test_every_cloud_resource_of_the_shipped_stacks_can_be_found_again() -> None:
    made = [each.type for stack in ("dev-gke", "prod-gke", "dev-eks", "prod-eks") for each in as_shipped(stack).made.values()]
    types = {each for each in made if each.startswith(("aws:", "gcp:"))}
    assert len(types) > 40

    assert sorted(types - resource_ids().keys() - searched()) == []


def test_every_cloud_resource_of_a_component_can_be_found_again() -> None:
    """The test reads the classes that components call, to include resources that no shipped stack has."""
    known = {token.rpartition(":")[2] for token in {*resource_ids(), *searched()}}
    made: dict[str, str] = {}
    for path in COMPONENTS.rglob("*.py"):
        tree = ast.parse(path.read_text())
        modules = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module in {"pulumi_aws", "pulumi_gcp"}
            for alias in node.names
        }
        for node in ast.walk(tree):
            call = node.func if isinstance(node, ast.Call) else None
            if isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name) and call.value.id in modules:
                made[call.attr] = str(path.relative_to(COMPONENTS))
    resources = {name: path for name, path in made.items() if not name.endswith("Args") and name[0].isupper()}
    assert {"Cluster", "NodePool", "Vpc", "Role"} <= resources.keys()

    assert {name: path for name, path in resources.items() if name not in known} == {}


@pytest.mark.parametrize(
    "token,inputs,expected",
    [
        (
            "gcp:container/nodePool:NodePool",
            {"project": "acme-ai", "location": "us-central1", "cluster": "dev", "name": "l4-spot"},
            "projects/acme-ai/locations/us-central1/clusters/dev/nodePools/l4-spot",
        ),
        (
            "gcp:serviceaccount/account:Account",
            {"project": "acme.com:ai", "accountId": "dev-nodes"},
            "projects/acme.com:ai/serviceAccounts/dev-nodes@ai.acme.com.iam.gserviceaccount.com",
        ),
        (
            "gcp:projects/iAMMember:IAMMember",
            {"project": "acme-ai", "role": "roles/viewer", "member": "serviceAccount:a@b"},
            "acme-ai/roles/viewer/serviceAccount:a@b",
        ),
        ("aws:iam/policy:Policy", {"name": "karpenter"}, "arn:aws:iam::123456789012:policy/karpenter"),
        ("aws:sqs/queue:Queue", {"name": "dev", "region": "eu-west-1"}, "https://sqs.eu-west-1.amazonaws.com/123456789012/dev"),
        ("kubernetes:core/v1:ResourceQuota", {"metadata": {"name": "team", "namespace": "red"}}, "red/team"),
        ("kubernetes:karpenter.sh/v1:NodePool", {"metadata": {"name": "l4-spot"}}, "l4-spot"),
        ("kubernetes:helm.sh/v3:Release", {"name": "kueue", "namespace": "kueue-system"}, "kueue-system/kueue"),
    ],
)
def test_an_id_follows_from_the_inputs(token: str, inputs: dict[str, Any], expected: str) -> None:
    assert resource_id(token, inputs, PLACE) == expected


@pytest.mark.parametrize(
    "token,inputs",
    [
        ("gcp:compute/network:Network", {"name": "dev"}),
        ("gcp:compute/network:Network", {"name": {"4dabf18193072939515e22adb298388d": "..."}, "project": "acme-ai"}),
        ("aws:ec2/vpc:Vpc", {"cidrBlock": "10.0.0.0/16"}),
        ("kubernetes:core/v1:ConfigMap", {"metadata": {}}),
    ],
)
def test_incomplete_inputs_have_no_id(token: str, inputs: dict[str, Any]) -> None:
    assert resource_id(token, inputs, PLACE) is None


@pytest.fixture
def search() -> Any:
    with mock_aws():
        yield AwsSearch(client)


def tagged(kind: str) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in TAGS.items()]}]


def test_a_created_network_is_found_by_its_tags_and_another_one_is_not(search: AwsSearch) -> None:
    ec2 = client("ec2")
    ec2.create_vpc(CidrBlock="10.1.0.0/16")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=tagged("vpc"))["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24", TagSpecifications=tagged("subnet"))["Subnet"]["SubnetId"]
    table = ec2.create_route_table(VpcId=vpc, TagSpecifications=tagged("route-table"))["RouteTable"]["RouteTableId"]
    association = ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)["AssociationId"]
    gateway = ec2.create_internet_gateway(TagSpecifications=tagged("internet-gateway"))["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    address = ec2.allocate_address(Domain="vpc", TagSpecifications=tagged("elastic-ip"))["AllocationId"]

    assert search.ids("aws:ec2/vpc:Vpc", {"tags": TAGS}) == [vpc]
    assert search.ids("aws:ec2/subnet:Subnet", {"tags": TAGS}) == [subnet]
    assert search.ids("aws:ec2/routeTable:RouteTable", {"tags": TAGS}) == [table]
    assert search.ids("aws:ec2/internetGateway:InternetGateway", {"tags": TAGS}) == [gateway]
    assert search.ids("aws:ec2/eip:Eip", {"tags": TAGS}) == [address]
    assert search.ids("aws:ec2/routeTableAssociation:RouteTableAssociation", {"subnetId": subnet}) == [association]
    route = {"routeTableId": table, "destinationCidrBlock": "0.0.0.0/0"}
    # crc32 of 0.0.0.0/0, as in the provider's documented ids: r-rtb-...1080289494.
    assert search.ids("aws:ec2/route:Route", route) == [f"r-{table}1080289494"]
    assert search.ids("aws:ec2/route:Route", route | {"destinationCidrBlock": "10.9.0.0/16"}) == []
    [default] = search.ids("aws:ec2/defaultSecurityGroup:DefaultSecurityGroup", {"vpcId": vpc}) or []
    assert default.startswith("sg-")


def test_a_resource_that_was_not_created_is_not_found(search: AwsSearch) -> None:
    assert {token: search.ids(token, {"tags": TAGS}) for token in TAGGED} == {token: [] for token in TAGGED}


def test_a_node_group_is_found_by_the_prefix_of_its_name(search: AwsSearch) -> None:
    eks = client("eks")
    role = "arn:aws:iam::123456789012:role/dev"
    eks.create_cluster(name="dev", roleArn=role, resourcesVpcConfig={})
    wanted = {"clusterName": "dev", "nodeGroupNamePrefix": "system-"}

    assert search.ids("aws:eks/nodeGroup:NodeGroup", wanted) == []
    for name in ("system-20261122", "other"):
        eks.create_nodegroup(clusterName="dev", nodegroupName=name, subnets=[], nodeRole=role)
    assert search.ids("aws:eks/nodeGroup:NodeGroup", wanted) == ["dev:system-20261122"]
    assert search.ids("aws:eks/nodeGroup:NodeGroup", {"clusterName": {"$secret": True}}) is None, "a name that is not known"


def test_a_key_is_found_by_its_tags_unless_it_is_being_deleted(search: AwsSearch) -> None:
    kms = client("kms")
    tags: Any = [{"TagKey": key, "TagValue": value} for key, value in TAGS.items()]
    key, old = (kms.create_key(Tags=tags)["KeyMetadata"]["KeyId"] for _ in range(2))
    kms.schedule_key_deletion(KeyId=old, PendingWindowInDays=7)

    assert search.ids("aws:kms/key:Key", {"tags": TAGS}) == [key]


def test_a_file_system_and_its_access_resources_are_found(search: AwsSearch) -> None:
    ec2, efs = client("ec2"), client("efs")
    tags: Any = [{"Key": key, "Value": value} for key, value in TAGS.items()]
    efs.create_file_system(CreationToken="another")
    system = efs.create_file_system(CreationToken="ours", Tags=tags)["FileSystemId"]
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    target = efs.create_mount_target(FileSystemId=system, SubnetId=subnet)["MountTargetId"]
    door = efs.create_access_point(ClientToken="door", FileSystemId=system, Tags=tags)["AccessPointId"]

    assert search.ids("aws:efs/fileSystem:FileSystem", {"tags": TAGS}) == [system]
    assert search.ids("aws:efs/mountTarget:MountTarget", {"fileSystemId": system, "subnetId": subnet}) == [target]
    assert search.ids("aws:efs/mountTarget:MountTarget", {"fileSystemId": system, "subnetId": "subnet-other"}) == []
    assert search.ids("aws:efs/accessPoint:AccessPoint", {"fileSystemId": system, "tags": TAGS}) == [door]
    assert search.ids("aws:efs/accessPoint:AccessPoint", {"fileSystemId": system, "tags": TAGS | {"Name": "other"}}) == []
    assert resource_id("aws:efs/fileSystemPolicy:FileSystemPolicy", {"fileSystemId": system}, PLACE) == system


def test_a_lustre_file_system_and_its_associations_are_found(search: AwsSearch) -> None:
    fsx = client("fsx")
    tags: Any = [{"Key": key, "Value": value} for key, value in TAGS.items()]
    made: Any = {"FileSystemType": "LUSTRE", "StorageCapacity": 1200, "SubnetIds": ["subnet-01234567"]}
    fsx.create_file_system(**made)
    system = fsx.create_file_system(**made, Tags=tags)["FileSystem"]["FileSystemId"]

    assert search.ids("aws:fsx/lustreFileSystem:LustreFileSystem", {"tags": TAGS}) == [system]
    assert search.ids("aws:fsx/lustreFileSystem:LustreFileSystem", {"tags": TAGS | {"Name": "other"}}) == []


def test_a_data_repository_association_is_found_by_its_tags_unless_it_is_being_deleted() -> None:
    """Moto does not support them, so AWS's answers have the form of botocore's model."""
    fsx = client("fsx")
    tags = [{"Key": key, "Value": value} for key, value in TAGS.items()]
    going = {"AssociationId": "dra-000000001", "Lifecycle": "DELETING", "Tags": tags}
    another = {"AssociationId": "dra-000000002", "Lifecycle": "AVAILABLE"}
    ours = {"AssociationId": "dra-000000003", "Lifecycle": "CREATING", "Tags": tags}
    asked = {"Filters": [{"Name": "file-system-id", "Values": ["fs-01234567"]}]}
    inputs = {"fileSystemId": "fs-01234567", "tags": TAGS}
    with Stubber(fsx) as answers:
        answers.add_response("describe_data_repository_associations", {"Associations": [going, another, ours]}, asked)
        answers.add_client_error("describe_data_repository_associations", "FileSystemNotFound", expected_params=asked)

        search = AwsSearch(lambda _service: fsx)
        assert search.ids("aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation", inputs) == ["dra-000000003"]
        assert search.ids("aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation", inputs) == []


def test_an_id_of_another_resource_in_the_state_is_not_used() -> None:
    with mock_aws():
        ec2 = client("ec2")
        first = ec2.create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=tagged("vpc"))["Vpc"]["VpcId"]
        pending = PendingCreate(
            {"urn": "urn:pulumi:dev::flexspot::aws:ec2/vpc:Vpc::network-vpc", "type": "aws:ec2/vpc:Vpc", "inputs": {"tags": TAGS}}
        )
        identify = Identifying(PLACE, client).identify

        assert identify(pending, frozenset()) == first
        assert identify(pending, frozenset({first})) is None, "it was not created"
        ec2.create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=tagged("vpc"))
        assert isinstance(identify(pending, frozenset()), NotIdentified), "two match, so it is not identified"
