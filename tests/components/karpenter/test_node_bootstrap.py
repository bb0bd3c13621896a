"""Kubelet settings and user data of Karpenter's nodes, as EC2NodeClass spells them and in each image's format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml
from karpenter_node_class_args import KUBELET, NODE_CLASS, NODE_CONFIG, node_class_args

from flexspot.components.karpenter.ec2_node_class import Ec2NodeClass, bootstrap_spec, check_node_class

if TYPE_CHECKING:
    from component_types import Register

DEFINITION = Path(__file__).resolve().parents[3] / ".tools/assets/karpenter-aws/crds/karpenter.k8s.aws_ec2nodeclasses.yaml"
BOTTLEROCKET = "bottlerocket@1.65.0"


def test_kubelet_and_user_data_are_in_the_node_class(register: Register) -> None:
    [made] = register(lambda: Ec2NodeClass("l4", node_class_args(kubelet=KUBELET, user_data=NODE_CONFIG))).of(NODE_CLASS)

    assert made["spec"]["userData"] == NODE_CONFIG
    assert made["spec"]["kubelet"] == {
        "maxPods": 110,
        "kubeReserved": {"cpu": "200m", "memory": "512Mi", "ephemeral-storage": "1Gi", "pid": "1000"},
        "systemReserved": {"memory": "256Mi"},
        "evictionHard": {"memory.available": "5%", "nodefs.available": "10%"},
        "evictionSoft": {"memory.available": "500Mi"},
        "evictionSoftGracePeriod": {"memory.available": "1m30s"},
        "imageGCHighThresholdPercent": 85,
        "imageGCLowThresholdPercent": 80,
        "cpuCFSQuota": True,
    }


def test_karpenters_own_definition_has_these_fields_and_accepts_these_values() -> None:
    """The lab tests its CEL rules: tests/lab/test_eks_node_class_crd.py."""
    if not DEFINITION.is_file():
        pytest.skip(f"there is no {DEFINITION}: `make tools` brings it")
    schema = yaml.safe_load(DEFINITION.read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    kubelet = bootstrap_spec({"kubelet": {**KUBELET, "pods_per_core": 10}})["kubelet"]  # pyrefly: ignore[bad-assignment] -- the keys of one

    assert set(kubelet) == set(schema["kubelet"]["properties"]) - {"clusterDNS", "evictionMaxPodGracePeriod"}
    jsonschema.Draft202012Validator(schema["kubelet"]).validate(kubelet)


@pytest.mark.parametrize("empty", [{}, {"kubelet": None, "user_data": None}, {"kubelet": {}}, {"kubelet": {"eviction_hard": {}}}])
def test_by_default_nothing_is_set(empty: dict[str, Any]) -> None:
    assert bootstrap_spec(node_class_args(**empty)) == {}


@pytest.mark.parametrize(
    "ami,user_data",
    [
        ("al2023@v20260903", NODE_CONFIG),
        ("al2023@v20260903", "#!/bin/bash\ndnf upgrade --security -y\n"),
        ("al2023@v20260903", 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n\n--//--\n'),
        (BOTTLEROCKET, '[settings.kubernetes]\nallowed-unsafe-sysctls = ["net.core.somaxconn"]\n'),
    ],
)
def test_user_data_in_the_images_form_is_accepted(ami: str, user_data: str) -> None:
    check_node_class("l4", node_class_args(ami=ami, user_data=user_data))


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"user_data": "[settings]\nmotd = 'ours'\n"}, "is neither a NodeConfig, nor a script that begins with #!, nor a MIME archive"),
        ({"user_data": "dnf upgrade -y\n"}, "is neither a NodeConfig"),
        ({"user_data": "kind: Pod\napiVersion: v1\n"}, "is YAML, and not a NodeConfig of node.eks.aws"),
        ({"ami": BOTTLEROCKET, "user_data": NODE_CONFIG}, "is not TOML, which Bottlerocket reads"),
        ({"ami": BOTTLEROCKET, "user_data": "[setting]\n"}, "has more than \\[settings\\]"),
        ({"user_data": "#!" + "x" * 12_000}, "user_data \\(is 12002 characters\\): must have at most 12000"),
        ({"kubelet": {"max_pods": 9}}, "kubelet: max_pods \\(is 9\\): should be at least 10"),
        ({"kubelet": {"kube_reserved": {"gpu": "1"}}}, "kube_reserved.gpu"),
        ({"kubelet": {"kube_reserved": {"cpu": "-1"}}}, "kube_reserved.cpu"),
        ({"kubelet": {"eviction_hard": {"memory.free": "5%"}}}, "eviction_hard"),
        ({"kubelet": {"eviction_soft": {"memory.available": "5%"}}}, "eviction_soft and eviction_soft_grace_period name different signals"),
        (
            {"kubelet": {"image_gc_high_threshold_percent": 70, "image_gc_low_threshold_percent": 70}},
            "kubelet: image_gc_high_threshold_percent must be above image_gc_low_threshold_percent",
        ),
        ({"ami": BOTTLEROCKET, "kubelet": {"pods_per_core": 10}}, "Bottlerocket has no such setting"),
        ({"reservation_ids": ["cr-0a1b2c3d4e5f60718"], "reservation_owner": "444455556666"}, "is only for reservation_tags"),
        ({"reservation_tags": {"a": "b"}, "reservation_owner": "4444"}, "reservation_owner \\(is 4444\\)"),
    ],
)
def test_arguments_that_karpenter_or_the_image_would_reject_are_refused(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        check_node_class("l4", node_class_args(**change))
