"""ExistingEksCluster: it is read, never created, and has the outputs of a created one."""

from __future__ import annotations

import json
import re
from typing import Any

import pulumi
import pytest
from component_outputs import ReadCloud, outputs_of
from eks_cluster_args import ACCOUNT, CLUSTER

from flexspot.components.eks.existing_cluster import ExistingEksCluster, ExistingEksClusterArgs

ARN = f"arn:aws:eks:eu-west-1:{ACCOUNT}:cluster/lab"


def found(identity: str) -> dict[str, Any]:
    """Return EKS's answer about the cluster."""
    return {
        "name": identity,
        "endpoint": "https://ABCD1234.gr7.eu-west-1.eks.amazonaws.com",
        "certificateAuthority": {"data": "Y2E="},
        "vpcConfig": {"subnetIds": ["subnet-0aaaaaaaaaaaaaaaa"], "clusterSecurityGroupId": "sg-0123456789abcdef0"},
    }


NEEDS: Any = [
    {"user": "Karpenter 1.14.1", "least": "1.26", "most": "1.36", "remedy": "name another in controllers.karpenter.version"},
    {"user": "Kueue 0.19.2", "least": "1.29", "most": None, "remedy": "leave it out"},
]


def arguments(**changes: Any) -> ExistingEksClusterArgs:
    return {"cluster": "lab", "account": ACCOUNT, "region": "eu-west-1"} | changes  # pyrefly: ignore[bad-return] -- a test's own


def seen(cloud: ReadCloud, **changes: Any) -> dict[str, Any]:
    """Return the component's outputs, the names of those that are secret, and whether each is known."""

    def make() -> ExistingEksCluster:
        cluster = ExistingEksCluster("cluster", arguments(**changes))
        assert len(cluster.ready) == 1
        return cluster

    return outputs_of(cloud, make, preview=cloud.is_preview)


def test_the_cluster_is_read_by_its_name_and_only_the_component_is_registered() -> None:
    cloud = ReadCloud(found)

    seen(cloud)

    assert cloud.read == [(CLUSTER, "lab")]
    assert cloud.made == ["flexspot:index:ExistingEksCluster"]


def test_outputs_are_those_of_a_created_cluster_and_none_is_a_secret() -> None:
    outputs = seen(ReadCloud(lambda identity: found(identity) | {"accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"}}))

    assert (outputs["cluster_name"], outputs["arn"]) == ("lab", ARN)
    assert outputs["endpoint"] == "https://ABCD1234.gr7.eu-west-1.eks.amazonaws.com"
    assert outputs["certificate_authority"] == "Y2E="
    assert outputs["security_group_id"] == "sg-0123456789abcdef0"
    assert outputs["credentials_command"] == "aws eks update-kubeconfig --name lab --region eu-west-1"
    assert outputs["secrets"] == [False] * 7


def test_the_kubeconfig_is_that_of_a_created_cluster() -> None:
    written = json.loads(seen(ReadCloud(found))["kubeconfig"])

    assert written["current-context"] == ARN
    assert written["clusters"][0]["cluster"] == {
        "server": "https://ABCD1234.gr7.eu-west-1.eks.amazonaws.com",
        "certificate-authority-data": "Y2E=",
    }
    assert written["users"][0]["user"]["exec"]["args"][:4] == ["eks", "get-token", "--cluster-name", "lab"]


def test_a_cluster_without_access_entries_is_refused_with_a_remedy() -> None:
    cloud = ReadCloud(lambda identity: found(identity) | {"accessConfig": {"authenticationMode": "CONFIG_MAP"}})

    with pytest.raises(pulumi.RunError, match=r"authentication mode of lab is CONFIG_MAP.*update-cluster-config --name lab"):
        seen(cloud)


@pytest.mark.parametrize("version", ["1.29", "1.36"])
def test_a_version_that_supports_everything_is_accepted(version: str) -> None:
    assert seen(ReadCloud(lambda identity: found(identity) | {"version": version}), versions=NEEDS)["cluster_name"] == "lab"


def test_a_version_that_lacks_a_feature_is_refused_with_a_remedy() -> None:
    update = "its owner upgrades it, one minor version at a time, with `aws eks update-cluster-version --name lab --region eu-west-1`, or"
    begins = "ExistingEksCluster cluster: lab has Kubernetes 1.25, and "

    with pytest.raises(pulumi.RunError) as old:
        seen(ReadCloud(lambda identity: found(identity) | {"version": "1.25"}), versions=NEEDS)
    with pytest.raises(pulumi.RunError) as new:
        seen(ReadCloud(lambda identity: found(identity) | {"version": "1.37"}), versions=NEEDS)

    assert str(old.value).splitlines() == [
        f"{begins}Karpenter 1.14.1 needs 1.26 to 1.36; {update} name another in controllers.karpenter.version",
        f"{begins}Kueue 0.19.2 needs 1.29 or newer; {update} leave it out",
    ]
    assert len(str(new.value).splitlines()) == 1


def test_the_arn_is_of_the_clusters_partition() -> None:
    outputs = seen(ReadCloud(found), partition="aws-us-gov", region="us-gov-west-1")

    assert outputs["arn"] == f"arn:aws-us-gov:eks:us-gov-west-1:{ACCOUNT}:cluster/lab"


def test_offline_only_outputs_from_the_arguments_are_known() -> None:
    known = seen(ReadCloud(None))["known"]

    assert {name for name, each in known.items() if each} == {"cluster_name", "arn", "credentials_command"}


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"cluster": "lab cluster"}, "cluster (is 'lab cluster'): must be letters, digits, hyphens and underscores, 100 at most"),
        ({"region": "cn-north-1"}, "partition (is 'aws'): region cn-north-1 is in partition aws-cn"),
    ],
)
def test_arguments_that_aws_does_not_have_are_refused_before_anything_is_read(change: dict[str, str], problem: str) -> None:
    cloud = ReadCloud(found)

    with pytest.raises(ValueError, match=re.escape(f"ExistingEksCluster cluster: {problem}")):
        seen(cloud, **change)

    assert (cloud.made, cloud.read) == ([], [])
