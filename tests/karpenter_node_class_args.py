"""Arguments of a valid Ec2NodeClass, for tests to change, and one of each kind that the platform creates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flexspot.components.karpenter.ec2_node_class import Ec2NodeClassArgs

COMPONENT = "flexspot:index:Ec2NodeClass"
NODE_CLASS = "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass"

KEY = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"

NODE_CONFIG = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {featureGates: {FastImagePull: true}}\n"

KUBELET: dict[str, Any] = {
    "max_pods": 110,
    "kube_reserved": {"cpu": "200m", "memory": "512Mi", "ephemeral-storage": "1Gi", "pid": "1000"},
    "system_reserved": {"memory": "256Mi"},
    "eviction_hard": {"memory.available": "5%", "nodefs.available": "10%"},
    "eviction_soft": {"memory.available": "500Mi"},
    "eviction_soft_grace_period": {"memory.available": "1m30s"},
    "image_gc_high_threshold_percent": 85,
    "image_gc_low_threshold_percent": 80,
    "cpu_cfs_quota": True,
}

KINDS: dict[str, dict[str, Any]] = {
    "al2023": {},
    "bottlerocket": {"ami": "bottlerocket@1.65.0", "kms_key": KEY, "local_nvme": True},
    "latest": {"ami": "al2023@latest", "allow_latest_ami": True},
    "p5-efa": {"efa_interfaces": 32, "placement_group": "platform-h100-reserved", "local_nvme": True, "detailed_monitoring": True},
    "g6-efa": {"efa_interfaces": 1},
    "reserved-by-id": {"reservation_ids": ["cr-0b1b2c3d4e5f60718", "cr-0a1b2c3d4e5f60718"]},
    "reserved-by-tags": {"reservation_tags": {"purpose": "training"}},
    "reserved-by-another": {"reservation_tags": {"purpose": "training"}, "reservation_owner": "444455556666"},
    "tuned-al2023": {"kubelet": KUBELET | {"pods_per_core": 10}, "user_data": NODE_CONFIG},
    "tuned-bottlerocket": {"ami": "bottlerocket@1.65.0", "kubelet": KUBELET, "user_data": "[settings]\nmotd = 'ours'\n"},
    "capacity-block": {
        "reservation_kind": "capacity-block",
        "reservation_ids": ["cr-0a1b2c3d4e5f60718"],
        "zones": ["us-east-1a"],
        "efa_interfaces": 32,
    },
    "existing-network": {"subnet_ids": ["subnet-0b1c2d3e", "subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]},
}
"""Arguments of each kind that differ from `node_class_args()`."""


def node_class_args(**changes: Any) -> Ec2NodeClassArgs:
    arguments: Ec2NodeClassArgs = {
        "node_class": "l4-spot",
        "ami": "al2023@v20260903",
        "cluster": "platform",
        "node_role": "platform-nodes",
        "tags": {"environment": "dev", "owner": "ml-platform"},
        "labels": {"flexspot.dev/owner": "ml-platform"},
    }
    arguments.update(changes)  # pyrefly: ignore[no-matching-overload] -- also invalid ones, on purpose
    return arguments
