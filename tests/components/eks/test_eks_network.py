"""EksNetwork: private subnets with routes out that Karpenter discovers, and endpoints of AWS services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from eks_cluster_args import INGRESS, SECURITY_GROUP
from eks_network_args import TAGS, ZONES, network_args

from flexspot.components.eks.network import EksNetwork

if TYPE_CHECKING:
    from collections.abc import Callable

    from component_types import Outputs, Register


ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
NAT = "aws:ec2/natGateway:NatGateway"
ROUTE = "aws:ec2/route:Route"
SUBNET = "aws:ec2/subnet:Subnet"


def found(registered: Any, kind: str) -> dict[str, dict[str, Any]]:
    """Return the inputs of the resources of a type, by their Pulumi names."""
    return dict(zip(registered.names(kind), registered.of(kind), strict=True))


@pytest.fixture
def network_of(register: Register) -> Callable[..., Any]:
    """Return the resources that EksNetwork registers with some arguments changed."""

    def run(**changes: Any) -> Any:
        return register(lambda: EksNetwork("net", network_args(**changes)))

    return run


def test_the_vpc_resolves_names_and_its_default_security_group_has_no_rules(network_of: Callable[..., Any]) -> None:
    registered = network_of()

    [vpc], [default] = registered.of("aws:ec2/vpc:Vpc"), registered.of("aws:ec2/defaultSecurityGroup:DefaultSecurityGroup")
    assert (vpc["cidrBlock"], vpc["enableDnsHostnames"], vpc["enableDnsSupport"]) == ("10.0.0.0/16", True, True)
    assert (default["vpcId"], default["ingress"], default["egress"]) == ("net-vpc-id", [], [])


def test_each_zone_has_its_ranges_and_karpenter_only_finds_the_private_subnets(network_of: Callable[..., Any]) -> None:
    registered = network_of()

    subnets = found(registered, SUBNET)
    tags = {name: each["tags"] for name, each in subnets.items()}
    assert tags["net-private-us-east-1b"] == {
        **TAGS,
        "Name": "prod-private-us-east-1b",
        "karpenter.sh/discovery": "prod",
        "kubernetes.io/role/internal-elb": "1",
    }
    assert tags["net-public-us-east-1b"] == {**TAGS, "Name": "prod-public-us-east-1b", "kubernetes.io/role/elb": "1"}
    assert tags["net-control-plane-us-east-1a"] == {**TAGS, "Name": "prod-control-plane-us-east-1a"}
    assert [name for name in subnets if "karpenter.sh/discovery" in tags[name]] == [f"net-private-{z}" for z in ZONES]
    ranges = {name: each["cidrBlock"] for name, each in subnets.items() if each["availabilityZone"] == "us-east-1b"}
    assert ranges == {
        "net-private-us-east-1b": "10.0.64.0/18",
        "net-public-us-east-1b": "10.0.196.0/22",
        "net-control-plane-us-east-1b": "10.0.255.240/28",
    }
    assert "net-control-plane-us-east-1c" not in subnets
    assert {each["mapPublicIpOnLaunch"] for each in subnets.values()} == {False}
    assert "net-control-plane-routes-id" not in {each["routeTableId"] for each in registered.of(ROUTE)}


def test_the_control_plane_stays_where_it_is_when_the_nodes_move(network_of: Callable[..., Any]) -> None:
    before = found(network_of(), SUBNET)
    after = found(network_of(zones=["us-east-1d", "us-east-1b", "us-east-1c"], control_plane_zones=["us-east-1a", "us-east-1b"]), SUBNET)

    control_plane = ["net-control-plane-us-east-1a", "net-control-plane-us-east-1b"]
    assert [after[name] for name in control_plane] == [before[name] for name in control_plane]
    assert "net-private-us-east-1a" not in after


def test_by_default_each_zone_has_its_own_nat_gateway(network_of: Callable[..., Any]) -> None:
    registered = network_of()

    nats, routes = found(registered, NAT), found(registered, ROUTE)
    assert {name: each["subnetId"] for name, each in nats.items()} == {f"net-nat-{z}": f"net-public-{z}-id" for z in ZONES}
    assert {each["allocationId"] for each in nats.values()} == {f"net-nat-{z}-address-id" for z in ZONES}
    assert {each["domain"] for each in registered.of("aws:ec2/eip:Eip")} == {"vpc"}
    for zone in ZONES:
        assert routes[f"net-private-{zone}-out"] == {
            "routeTableId": f"net-private-{zone}-routes-id",
            "destinationCidrBlock": "0.0.0.0/0",
            "natGatewayId": f"net-nat-{zone}-id",
        }
    assert routes["net-public-out"]["gatewayId"] == "net-internet-gateway-id"


@pytest.mark.parametrize("zones", [["us-east-1a", "us-east-1b"], ["us-east-1b", "us-east-1a"]])
def test_a_single_nat_gateway_serves_all_zones_and_stays_where_it_is(zones: list[str], network_of: Callable[..., Any]) -> None:
    registered = network_of(
        nat="single", zones=zones, private_cidrs=["10.0.0.0/18", "10.0.64.0/18"], public_cidrs=["10.0.192.0/22", "10.0.196.0/22"]
    )

    assert registered.names(NAT) == ["net-nat-us-east-1a"]
    routes = found(registered, ROUTE)
    assert {routes[f"net-private-{zone}-out"]["natGatewayId"] for zone in zones} == {"net-nat-us-east-1a-id"}


def test_every_subnet_has_its_route_table(network_of: Callable[..., Any]) -> None:
    tables = {each["subnetId"]: each["routeTableId"] for each in network_of().of("aws:ec2/routeTableAssociation:RouteTableAssociation")}

    assert tables == {
        **{f"net-private-{zone}-id": f"net-private-{zone}-routes-id" for zone in ZONES},
        **{f"net-public-{zone}-id": "net-public-routes-id" for zone in ZONES},
        **{f"net-control-plane-{zone}-id": "net-control-plane-routes-id" for zone in ZONES[:2]},
    }


def test_s3_is_reached_from_the_private_subnets_without_the_nat(network_of: Callable[..., Any]) -> None:
    s3 = found(network_of(), ENDPOINT)["net-s3-endpoint"]

    assert (s3["serviceName"], s3["vpcEndpointType"]) == ("com.amazonaws.us-east-1.s3", "Gateway")
    assert s3["routeTableIds"] == [f"net-private-{zone}-routes-id" for zone in ZONES]


def test_services_that_nodes_and_karpenter_call_have_endpoints_in_the_private_subnets_with_a_separate_security_group(
    network_of: Callable[..., Any],
) -> None:
    registered = network_of()

    interfaces = [each for each in registered.of(ENDPOINT) if each["vpcEndpointType"] == "Interface"]

    names = [each["serviceName"].removeprefix("com.amazonaws.us-east-1.") for each in interfaces]
    assert sorted(names) == ["ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "sqs", "ssm", "sts"]
    for each in interfaces:
        assert each["privateDnsEnabled"] is True
        assert each["subnetIds"] == [f"net-private-{zone}-id" for zone in ZONES]
        assert each["securityGroupIds"] == ["net-endpoints-security-group-id"]
    [rule] = registered.of(INGRESS)
    assert (rule["securityGroupId"], rule["cidrIpv4"]) == ("net-endpoints-security-group-id", "10.0.0.0/16")
    assert (rule["ipProtocol"], rule["fromPort"], rule["toPort"]) == ("tcp", 443, 443)
    assert "ingress" not in registered.of(SECURITY_GROUP)[0]


def test_endpoints_can_be_set_in_any_order(network_of: Callable[..., Any]) -> None:
    registered = network_of(endpoints=["sqs", "logs"])

    assert sorted(registered.names(ENDPOINT)) == ["net-logs-endpoint", "net-s3-endpoint", "net-sqs-endpoint"]


def test_without_endpoints_there_is_no_security_group_for_them(network_of: Callable[..., Any]) -> None:
    registered = network_of(endpoints=[])

    assert registered.names(ENDPOINT) == ["net-s3-endpoint"]
    assert registered.of(SECURITY_GROUP) == []


def test_resources_in_the_private_subnets_wait_for_their_routes(register: Register) -> None:
    waited_for: list[str | None] = []

    def declare() -> None:
        network = EksNetwork("net", network_args())

        async def note() -> None:
            waited_for.extend([await resource.urn.future() for resource in await network.private_subnet_ids.resources()])

        pulumi.Output.from_input(note()).apply(lambda _: None)

    register(declare)

    names = {(urn or "").rpartition("::")[2] for urn in waited_for}
    assert {f"net-private-{zone}-out" for zone in ZONES} < names


def test_aws_accepts_the_names_of_a_network_for_the_longest_cluster_name(network_of: Callable[..., Any]) -> None:
    registered = network_of(cluster="sg-" + "c" * 97)

    [group] = registered.of(SECURITY_GROUP)
    assert not group["name"].startswith("sg-")
    assert len(group["name"]) <= 255


def test_zones_given_by_id_are_requested_by_id(network_of: Callable[..., Any]) -> None:
    subnets = found(network_of(zones=["use1-az1", "use1-az4", "use1-az6"]), SUBNET)

    assert [name for name, each in subnets.items() if "availabilityZone" in each] == []
    assert subnets["net-private-use1-az4"]["availabilityZoneId"] == "use1-az4"


@pytest.mark.parametrize("zones", [["use1-az1", "us-east-1b", "us-east-1c"], ["use2-az1", "use2-az2", "use2-az3"]])
def test_names_mixed_with_ids_and_ids_of_another_region_are_refused(zones: list[str], network_of: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"all by name or all by id; name some, such as us-east-1a and us-east-1b, or use1-az1"):
        network_of(zones=zones)


def test_outputs_are_ids_in_the_order_of_the_zones(outputs: Outputs) -> None:
    found = outputs(lambda: EksNetwork("net", network_args()))

    assert found["vpc_id"] == "net-vpc-id"
    assert found["private_subnet_ids"] == [f"net-private-{zone}-id" for zone in ZONES]
    assert found["public_subnet_ids"] == [f"net-public-{zone}-id" for zone in ZONES]


def test_every_resource_has_the_tags(network_of: Callable[..., Any]) -> None:
    taggable = [inputs for token, _, inputs in network_of().resources if "tags" in inputs and token.startswith("aws:")]

    assert len(taggable) > 20
    assert all(inputs["tags"].items() >= TAGS.items() for inputs in taggable)
