"""The rows of planted defects that are about where capacity comes from and how queues share it. Not a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from planted_defects import FLAVOR, POOL, QUEUE, Defect, spec

if TYPE_CHECKING:
    from planted_defects import Resources

CLUSTER, CPU_POOL, NODE_CLASS = "cluster-cluster", "other-work-node-pool", "l4-spot-class-node-class"


def attached(resources: Resources) -> None:
    volume = {"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "1Ti", "volumeType": "gp3"}}
    spec(resources, NODE_CLASS)["blockDeviceMappings"].append(volume)


def provisioned_without_gpus(resources: Resources) -> None:
    limits = [{"resourceType": "cpu", "maximum": 64}, {"resourceType": "memory", "maximum": 256}]
    resources[CLUSTER][1]["clusterAutoscaling"] = {"enabled": True, "resourceLimits": limits}
    route_pool = {"machineType": "g2-standard-8", "spot": True, "gpu": {"type": "nvidia-l4", "count": 1}}
    body = {"nodePoolAutoCreation": {"enabled": True}, "priorities": [route_pool]}
    inputs = {"apiVersion": "cloud.google.com/v1", "kind": "ComputeClass", "metadata": {"name": "sweeps"}, "spec": body}
    resources["sweeps"] = ("kubernetes:cloud.google.com/v1:ComputeClass", inputs)


def on_demand_too(resources: Resources) -> None:
    requirements = spec(resources, POOL)["template"]["spec"]["requirements"]
    [of_capacity] = [each for each in requirements if each["key"] == "karpenter.sh/capacity-type"]
    of_capacity["values"] = ["spot", "on-demand"]


def alone(resources: Resources) -> None:
    spec(resources, QUEUE)["cohortName"] = "nobody-else"
    spec(resources, QUEUE)["resourceGroups"][0]["flavors"][0]["resources"][2]["borrowingLimit"] = "2"


def without_fair_sharing(resources: Resources) -> None:
    manager: dict[str, Any] = resources["kueue-release"][1]["values"]["managerConfig"]
    configuration = yaml.safe_load(manager["controllerManagerConfigYaml"])
    del configuration["fairSharing"]
    manager["controllerManagerConfigYaml"] = yaml.safe_dump(configuration)


def weighs(resources: Resources) -> None:
    without_fair_sharing(resources)
    spec(resources, QUEUE)["fairSharing"]["weight"] = "2"


def takes_from_training(resources: Resources) -> None:
    without_fair_sharing(resources)
    spec(resources, QUEUE)["preemption"]["borrowWithinCohort"] = {"policy": "LowerPriority", "maxPriorityThreshold": 100_000}


CAPACITY_DEFECTS = [
    Defect(
        *("ami-not-pinned", "dev-eks", NODE_CLASS),
        lambda made: spec(made, NODE_CLASS).update(amiSelectorTerms=[{"alias": "al2023@latest"}]),
    ),
    Defect("data-volume-never-mounted", "dev-eks", NODE_CLASS, attached),
    Defect("auto-provisioning-without-gpu-limit", "dev-gke", CLUSTER, provisioned_without_gpus),
    Defect("unbounded-node-pool", "dev-eks", CPU_POOL, lambda made: spec(made, CPU_POOL).pop("limits")),
    Defect("on-demand-fallback-uncapped", "dev-eks", POOL, on_demand_too),
    Defect("flavor-without-needed-toleration", "dev-gke", FLAVOR, lambda made: spec(made, FLAVOR).update(tolerations=[])),
    Defect("borrowing-without-cohort", "dev-eks", QUEUE, alone),
    Defect("fair-sharing-inert", "dev-eks", QUEUE, weighs),
    Defect("borrow-threshold-misread", "dev-eks", QUEUE, takes_from_training),
    Defect("dws-check-without-provisioner", "prod-gke", "dws-check", lambda made: spec(made, "dws-check").pop("parameters")),
]
