"""ExistingClusterParts: required add-ons of an existing cluster are read, each under a name that shows which one is missing."""

from __future__ import annotations

import pytest
from component_outputs import ReadCloud, outputs_of

from flexspot.components.eks.existing_cluster import MARKS, ExistingClusterParts


def test_each_addon_is_read_by_its_object_and_only_the_component_is_registered() -> None:
    cloud = ReadCloud(lambda identity: {"metadata": {"name": identity}})

    outputs_of(cloud, lambda: ExistingClusterParts("cluster-parts", {"addons": [each.value for each in MARKS]}))

    assert sorted(cloud.read) == [
        ("kubernetes:apps/v1:DaemonSet", "kube-system/eks-pod-identity-agent"),
        ("kubernetes:storage.k8s.io/v1:CSIDriver", "ebs.csi.aws.com"),
        ("kubernetes:storage.k8s.io/v1:CSIDriver", "efs.csi.aws.com"),
        ("kubernetes:storage.k8s.io/v1:CSIDriver", "fsx.csi.aws.com"),
        ("kubernetes:storage.k8s.io/v1:CSIDriver", "s3.csi.aws.com"),
    ]
    assert cloud.made == ["flexspot:index:ExistingClusterParts"]


def test_an_addon_without_a_known_object_is_refused() -> None:
    with pytest.raises(ValueError, match=r"ExistingClusterParts cluster-parts: addons \(is 'coredns'\): must be one of aws-ebs-csi-driver"):
        outputs_of(ReadCloud(None), lambda: ExistingClusterParts("cluster-parts", {"addons": ["coredns"]}))
