"""Add-ons with AWS's recommended version, which AWS returns for the cluster's Kubernetes version and which is unknown offline."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest
from addon_versions import ADDON_TOKEN, DEFAULTS, addon_version
from eks_cluster_args import ADDON, args
from program_declarations import declared, shipped

from flexspot.components.eks.auto_mode import AutoAddons
from flexspot.components.eks.cluster import EksCluster

EBS = "aws-ebs-csi-driver"


class RecommendingAws(pulumi.runtime.Mocks):
    """AWS's data source for recommended versions. It records its requests and the version of each add-on."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.versions: dict[str, str | None] = {}

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[Any, Any]]:
        if args.typ == ADDON:
            self.versions[args.inputs["addonName"]] = args.inputs.get("addonVersion")
        return f"{args.name}-id", dict(args.inputs)

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        assert args.token == ADDON_TOKEN
        self.requests.append(dict(args.args))
        return addon_version(args.args), []


@pytest.mark.parametrize("kubernetes", ["1.34", "1.35"])
def test_the_version_is_awss_default_for_the_clusters_kubernetes(kubernetes: str) -> None:
    cloud = RecommendingAws()
    pulumi.runtime.set_mocks(cloud, preview=False)
    wanted = args(version=kubernetes, addon_versions={EBS: "recommended", "coredns": "v1.13.2-eksbuild.11"})

    @pulumi.runtime.test
    def program() -> None:
        EksCluster("eks", wanted)

    program()
    assert cloud.requests == [{"addonName": EBS, "kubernetesVersion": kubernetes, "mostRecent": False}]
    assert cloud.versions[EBS] == DEFAULTS[EBS, kubernetes]
    assert cloud.versions["coredns"] == "v1.13.2-eksbuild.11"
    assert cloud.versions["vpc-cni"] is None


@pytest.mark.slow
def test_offline_it_is_unknown_and_not_omitted() -> None:
    settings = shipped("dev-eks")
    settings["cluster"]["addon_versions"] = {EBS: "recommended"}
    made = {each["addonName"]: each.get("addonVersion") for each in declared("dev-eks", settings).inputs_of("aws:eks/addon:Addon")}

    assert made.pop(EBS) == {"$unknown": True}
    assert {"$unknown": True} not in made.values()


def test_in_auto_mode_the_kubernetes_version_is_required() -> None:
    wanted: Any = {"cluster": "a", "cluster_name": "a", "account": "111122223333", "region": "us-east-1", "labels": {}}

    with pytest.raises(ValueError, match=r"version: is missing, but version recommended of an add-on requires it; name the"):
        AutoAddons("addons", wanted | {"addon_versions": {"metrics-server": "recommended"}})
