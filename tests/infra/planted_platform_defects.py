"""The rows of planted defects that are about tenants, priorities and the cloud's own resources. Not a test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from planted_defects import Defect, spec

if TYPE_CHECKING:
    from planted_defects import Resources

QUOTA, CLUSTER, BUCKET = "research-quota", "cluster-cluster", "checkpoints-bucket"
BLOCK, WORKER, LIFECYCLE = "datasets-public-access-block", "karpenter-nodes-worker-node", "karpenter-identity-node-lifecycle-policy"
LOWEST, LOW, REQUEST = "priorities-gpu-best-effort", "priorities-spot-workload-low", "dws-request"
GPUS = "requests.nvidia.com/gpu"


def one_long_document(resources: Resources) -> None:
    """As if all of Karpenter's permissions were in one policy."""
    document = json.loads(resources[LIFECYCLE][1]["policy"])
    resources[LIFECYCLE][1]["policy"] = json.dumps(document | {"Statement": document["Statement"] * 3})


PLATFORM_DEFECTS = [
    Defect(
        *("flex-job-over-seven-days", "prod-gke", REQUEST),
        lambda made: spec(made, REQUEST).update(parameters={"maxRunDurationSeconds": "1209600"}),
    ),
    Defect("priority-below-scale-up", "dev-gke", LOWEST, lambda made: made[LOWEST][1].update(value=-100)),
    Defect("preemptible-by-default-pods", "dev-eks", LOW, lambda made: made[LOW][1].update(value=-5)),
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
]
