"""Pools of Karpenter on EKS, a cluster of GKE by Config Connector, and a service with volumes, all through the Kubernetes provider."""

from typing import Any

import pulumi_kubernetes as k8s

CustomResource = k8s.apiextensions.CustomResource

CustomResource(
    "gpu",
    api_version="karpenter.k8s.aws/v1",
    kind="EC2NodeClass",
    metadata={"name": "gpu"},
    spec={
        "amiSelectorTerms": [{"alias": "al2023@v20260915"}],
        "role": "nodes",
        "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeType": "gp3", "volumeSize": "200Gi"}}],
    },
)
CustomResource(
    "default",
    api_version="karpenter.k8s.aws/v1",
    kind="EC2NodeClass",
    metadata={"name": "default"},
    spec={"amiSelectorTerms": [{"alias": "al2023@v20260915"}], "role": "nodes"},
)


def pool(name: str, node_class: str, requirements: list[dict[str, Any]], limits: dict[str, str]) -> None:
    CustomResource(
        name,
        api_version="karpenter.sh/v1",
        kind="NodePool",
        metadata={"name": name},
        spec={
            "template": {
                "spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": node_class},
                    "requirements": [
                        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a", "us-east-1b"]},
                        *requirements,
                    ],
                }
            },
            "limits": limits,
        },
    )


ON_DEMAND = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
pool(
    "h100",
    "gpu",
    [ON_DEMAND, {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p5.48xlarge"]}],
    {"nvidia.com/gpu": "20"},
)
pool(
    "web",
    "default",
    [ON_DEMAND, {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m6i.xlarge", "c6i.2xlarge"]}],
    {"cpu": "40"},
)
pool(
    "anything",
    "default",
    [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}],
    {"cpu": "100"},
)

CustomResource(
    "inference",
    api_version="container.cnrm.cloud.google.com/v1beta1",
    kind="ContainerCluster",
    metadata={"name": "inference"},
    spec={"location": "us-central1-a", "initialNodeCount": 1, "removeDefaultNodePool": True},
)
CustomResource(
    "inference-l4",
    api_version="container.cnrm.cloud.google.com/v1beta1",
    kind="ContainerNodePool",
    metadata={"name": "l4"},
    spec={
        "location": "us-central1-a",
        "clusterRef": {"name": "inference"},
        "initialNodeCount": 1,
        "autoscaling": {"minNodeCount": 1, "maxNodeCount": 4},
        "nodeConfig": {"machineType": "g2-standard-4", "diskSizeGb": 100, "guestAccelerator": [{"type": "nvidia-l4", "count": 1}]},
    },
)
CustomResource(
    "accounts",
    api_version="sql.cnrm.cloud.google.com/v1beta1",
    kind="SQLInstance",
    metadata={"name": "accounts"},
    spec={"databaseVersion": "POSTGRES_16", "region": "us-central1", "settings": {"tier": "db-f1-micro"}},
)

labels = {"app": "search"}
k8s.apps.v1.StatefulSet(
    "search",
    metadata={"name": "search"},
    spec={
        "service_name": "search",
        "replicas": 3,
        "selector": {"match_labels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "search", "image": "search:1"}]}},
        "volume_claim_templates": [
            {
                "metadata": {"name": "index"},
                "spec": {
                    "access_modes": ["ReadWriteOnce"],
                    "storage_class_name": "gp3",
                    "resources": {"requests": {"storage": "100Gi"}},
                },
            }
        ],
    },
)
k8s.core.v1.Service("search", metadata={"name": "search"}, spec={"type": "LoadBalancer", "selector": labels, "ports": [{"port": 443}]})
k8s.core.v1.Service("inside", metadata={"name": "inside"}, spec={"selector": labels, "ports": [{"port": 80}]})
k8s.core.v1.PersistentVolumeClaim(
    "notes",
    metadata={"name": "notes"},
    spec={"access_modes": ["ReadWriteOnce"], "storage_class_name": "gp3", "resources": {"requests": {"storage": "50Gi"}}},
)
