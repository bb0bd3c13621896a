"""EksNetwork: arguments that it refuses before anything is registered, and the endpoints of a region."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from eks_network_args import network_args

from flexspot.capacity.catalog.platform import default_services
from flexspot.components.eks.network import EksNetwork, service_name

if TYPE_CHECKING:
    from component_types import Refusal

TWO = {
    "zones": ["us-east-1a", "us-east-1b"],
    "private_cidrs": ["10.0.0.0/18", "10.0.64.0/18"],
    "public_cidrs": ["10.0.192.0/22", "10.0.196.0/22"],
}


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"cluster": "c" * 101}, "cluster (is '" + "c" * 101 + "'): must be letters, digits, hyphens and underscores, 100 at most"),
        ({"region": "us-central1"}, "region (is 'us-central1'): must be a region such as us-east-1"),
        ({"nat": "none"}, "nat (is 'none'): is not one of the allowed values; allowed: per-zone, single"),
        ({"zones": ["us-east-1a"]}, "zones (is ['us-east-1a']): must list two to six zones of us-east-1"),
        ({"zones": ["us-east-1a", "us-east-1a", "us-east-1b"]}, "each once"),
        ({"zones": ["us-east-1a", "us-east-1b", "us-west-2a"]}, "'us-west-2a']): must list two to six zones of us-east-1"),
        ({"vpc_cidr": "10.0.0.1/16"}, "vpc_cidr (is '10.0.0.1/16'): is not an IPv4 range: that address is inside 10.0.0.0/16"),
        ({"vpc_cidr": "10.0.0.0/15"}, "vpc_cidr 10.0.0.0/15 must be between /16 and /28"),
        ({**TWO, "private_cidrs": ["10.0.0.0/18", "10.0.64.0/29"]}, "private_cidrs 10.0.64.0/29 must be between /16 and /28"),
        ({**TWO, "control_plane_zones": ["us-east-1a"]}, "control_plane_zones (is ['us-east-1a'])"),
        ({**TWO, "control_plane_cidrs": ["10.0.240.0/28"]}, "control_plane_cidrs (is ['10.0.240.0/28']): must list 2 ranges"),
        ({**TWO, "control_plane_cidrs": ["10.0.240.0/28", "10.0.240.0/28"]}, "control_plane_cidrs (is 10.0.240.0/28): overlaps with"),
        ({**TWO, "private_cidrs": ["10.0.0.0/18"]}, "private_cidrs (is ['10.0.0.0/18']): must list 2 ranges, one for each zone"),
        ({**TWO, "private_cidrs": ["10.0.0.0/18", "everywhere"]}, "private_cidrs.1 (is 'everywhere'): is not an IPv4 range"),
        ({**TWO, "private_cidrs": ["10.0.0.0/18", "10.1.0.0/18"]}, "private_cidrs (is 10.1.0.0/18): is outside vpc_cidr, 10.0.0.0/16"),
        ({**TWO, "public_cidrs": ["10.0.192.0/22", "10.0.64.0/22"]}, "(is 10.0.64.0/18): overlaps with public_cidrs 10.0.64.0/22"),
        ({**TWO, "private_cidrs": ["10.0.0.0/18", "10.0.0.0/18"]}, "private_cidrs (is 10.0.0.0/18): overlaps with private_cidrs"),
        ({"endpoints": ["com.amazonaws.us-east-1.sqs!"]}, "endpoints (is ['com.amazonaws.us-east-1.sqs!'])"),
        ({"endpoints": ["sqs", "sqs"]}, "endpoints (is ['sqs', 'sqs']): must list short names of services, each once"),
    ],
)
def test_arguments_that_aws_would_reject_are_refused_before_anything_is_registered(
    change: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(EksNetwork, "net", network_args(**change))


def test_a_region_without_an_endpoint_of_eks_gets_none_and_uses_nat() -> None:
    assert {"eks", "eks-auth"} <= set(default_services("eu-west-1"))
    assert not {"eks", "eks-auth"} & set(default_services("mx-central-1"))
    assert "eks-auth" in default_services("ap-southeast-5")
    assert "eks" not in default_services("ap-southeast-5")


@pytest.mark.parametrize(
    "service,region,name",
    [
        ("sqs", "eu-west-1", "com.amazonaws.eu-west-1.sqs"),
        ("ecr.api", "us-gov-west-1", "com.amazonaws.us-gov-west-1.ecr.api"),
        ("ecr.api", "cn-north-1", "cn.com.amazonaws.cn-north-1.ecr.api"),
        ("s3", "cn-north-1", "com.amazonaws.cn-north-1.s3"),
    ],
)
def test_endpoints_have_awss_names_in_the_region(service: str, region: str, name: str) -> None:
    assert service_name(service, region) == name
