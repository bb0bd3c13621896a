"""What a cluster of EKS that is there already must have, from the settings, the plan and the known images."""

from __future__ import annotations

from typing import Any

import pytest
from settings_documents import changed

from capacity.catalog.node_images import shipped_images
from capacity.plan.build import build_plan
from capacity.plan.cluster_needs import EksClusterNeeds, KubernetesNeed, eks_cluster_needs
from capacity.settings.platform import EksSettings
from capacity.settings.stack_file import parse_settings

THEIRS: dict[str, Any] = {"node_role": "KarpenterNodeRole-shared"}


def needs(**changes: Any) -> EksClusterNeeds:
    written = {"cluster.existing": "shared", **{path.replace("__", "."): value for path, value in changes.items()}}
    settings = parse_settings(changed("eks", written), "settings")
    assert isinstance(settings, EksSettings)
    return eks_cluster_needs(settings, build_plan(settings), shipped_images())


def test_versions_are_those_of_the_image_of_karpenter_and_of_kueue() -> None:
    image = needs(cluster__ami="al2023@v20250807").versions[0]

    assert (image.user, image.least, image.most) == ("cluster.ami al2023@v20250807", "1.28", "1.33")
    assert needs().versions[1:] == (
        KubernetesNeed("Karpenter 1.14.1", "1.26", "1.36", "name another in controllers.karpenter.version"),
        KubernetesNeed("Kueue 0.19.0", "1.29", None, "say queueing.existing_kueue: true where there is an older one"),
    )


def test_somebody_elses_controllers_need_nothing_of_the_cluster() -> None:
    assert [each.user for each in needs(cluster__existing_karpenter=THEIRS, queueing={"existing_kueue": True}).versions] == [
        "cluster.ami al2023@v20260903"
    ]
    assert [each.user for each in needs(controllers__karpenter__version="1.99.0").versions[1:]] == ["Kueue 0.19.0"]


@pytest.mark.parametrize(
    "storage,drivers",
    [
        ({}, ["aws-mountpoint-s3-csi-driver"]),
        ({"checkpoints": "efs"}, ["aws-mountpoint-s3-csi-driver", "aws-efs-csi-driver"]),
        ({"checkpoints": "efs", "datasets": "efs"}, ["aws-efs-csi-driver"]),
        ({"checkpoints": "efs", "datasets": "lustre"}, ["aws-efs-csi-driver", "aws-fsx-csi-driver"]),
    ],
)
def test_drivers_are_those_of_what_teams_mount(storage: dict[str, str], drivers: list[str]) -> None:
    vpc = {"existing_vpc": "vpc-0a1b2c3d", "existing_private_subnets": ["subnet-0a1b2c3d", "subnet-1a2b3c4d"]}

    assert list(needs(storage=storage, network=vpc).addons) == ["eks-pod-identity-agent", *drivers]
