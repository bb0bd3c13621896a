"""The rows of planted defects that are about tenants, the cloud's own resources and alerts. Not a test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from planted_defects import Defect, spec

if TYPE_CHECKING:
    from planted_defects import Resources

QUOTA, CLUSTER, BUCKET, ALERTS = "research-quota", "cluster-cluster", "checkpoints-bucket", "gpu-alerts"
BLOCK, WORKER, LIFECYCLE = "datasets-public-access-block", "karpenter-nodes-worker-node", "karpenter-identity-node-lifecycle-policy"
GPUS = "requests.nvidia.com/gpu"


def monitoring(resources: Resources, kind: str, name: str, body: dict[str, Any]) -> None:
    metadata = {"name": name, "namespace": "monitoring"}
    inputs = {"apiVersion": "monitoring.coreos.com/v1", "kind": kind, "metadata": metadata, "spec": body}
    resources[name] = (f"kubernetes:monitoring.coreos.com/v1:{kind}", inputs)


def alert(resources: Resources, expression: str) -> None:
    """Adds an alert."""
    monitoring(resources, "PrometheusRule", ALERTS, {"groups": [{"name": "gpus", "rules": [{"alert": "Gpus", "expr": expression}]}]})


def idle_gpus_by_node(resources: Resources) -> None:
    endpoints = {"selector": {"matchLabels": {"app": "dcgm-exporter"}}, "endpoints": [{"port": "metrics"}]}
    monitoring(resources, "ServiceMonitor", "dcgm-exporter", endpoints)
    alert(resources, "(DCGM_FI_DEV_GPU_UTIL < 5) * on (node) group_left () kube_node_info")


def one_long_document(resources: Resources) -> None:
    """As if all of Karpenter's permissions were in one policy."""
    document = json.loads(resources[LIFECYCLE][1]["policy"])
    resources[LIFECYCLE][1]["policy"] = json.dumps(document | {"Statement": document["Statement"] * 3})


PLATFORM_DEFECTS = [
    Defect("namespace-without-gpu-quota", "dev-gke", "research-namespace", lambda made: spec(made, QUOTA)["hard"].pop(GPUS)),
    Defect("quota-below-queue-share", "dev-gke", QUOTA, lambda made: spec(made, QUOTA)["hard"].update({GPUS: "1"})),
    Defect("public-control-plane", "dev-eks", CLUSTER, lambda made: made[CLUSTER][1]["vpcConfig"].update(publicAccessCidrs=["0.0.0.0/0"])),
    Defect(
        *("public-control-plane", "dev-gke", CLUSTER),
        lambda made: made[CLUSTER][1].update(controlPlaneEndpointsConfig={}, privateClusterConfig={"enablePrivateNodes": True}),
    ),
    Defect("checkpoint-bucket-in-other-region", "dev-gke", BUCKET, lambda made: made[BUCKET][1].update(location="EUROPE-WEST4")),
    Defect("checkpoint-bucket-in-other-region", "dev-eks", BUCKET, lambda made: made[BUCKET][1].update(region="eu-west-1")),
    Defect("public-bucket", "dev-eks", BLOCK, lambda made: made[BLOCK][1].pop("blockPublicPolicy")),
    Defect(
        *("identity-too-broad", "dev-eks", WORKER),
        lambda made: made[WORKER][1].update(policyArn="arn:aws:iam::aws:policy/AdministratorAccess"),
    ),
    Defect("iam-document-too-long", "dev-eks", LIFECYCLE, one_long_document),
    Defect("alert-on-bare-histogram", "dev-gke", ALERTS, lambda made: alert(made, "max(kueue_admission_wait_time_seconds) > 3600")),
    Defect("alert-on-absent-label", "dev-eks", ALERTS, idle_gpus_by_node),
    Defect("alert-does-not-parse", "dev-gke", ALERTS, lambda made: alert(made, "sum(kueue_pending_workloads > 10")),
    Defect(
        *("gpu-count-instead-of-sum", "dev-eks", ALERTS),
        lambda made: alert(made, 'count(kube_pod_container_resource_limits{resource="nvidia_com_gpu"}) > 32'),
    ),
]
