"""A GKE ComputeClass: the order in which pods that select it get their capacity."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import re
from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from components.gke.compute_class_rungs import ComputeClassRungArgs, makes_pools, priority

API_VERSION = "cloud.google.com/v1"

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_LONGEST_DELAY_MINUTES = 1440


class ComputeClassArgs(TypedDict):
    """Arguments of ComputeClass."""

    name: str
    """The class's name, which pods select as `cloud.google.com/compute-class`: up to 63 lower-case letters, digits and hyphens."""

    labels: NotRequired[dict[str, str]]
    """Labels of the object. Default: none."""

    rungs: list[ComputeClassRungArgs]
    """What is tried, the first first; at least one."""

    consolidation_delay_minutes: NotRequired[int]
    """Minutes without work after which a node is removed: 1 to 1440. Default: 10."""

    optimize_rule_priority: NotRequired[bool]
    """Whether running pods are evicted to move them to a higher rung that has room again; not for training. Default: False."""

    service_account: NotRequired[pulumi.Input[str] | None]
    """E-mail address of the service account of the nodes that GKE makes; needed if and only if a rung makes pools. Default: none."""

    owner_labels: NotRequired[dict[str, str]]
    """Labels of the nodes that GKE makes, which say whose they are, to reports. Default: none."""

    autopilot: NotRequired[bool]
    """Whether the cluster is an Autopilot one: GKE then makes what every rung says, and none names a pool. Default: False."""


class ComputeClass(pulumi.ComponentResource):
    """A ladder of capacity that moves on when a rung has no capacity in stock, and never to machines that it does not name.

    On-demand and reserved rungs are existing pools with a ceiling. Rungs of Spot and flex-start may also be made by GKE; what bounds them
    are the cluster's limits for node auto-provisioning. On Autopilot (GKE 1.30.3-gke.1451000) GKE makes all of them, and what bounds them
    are quotas: of queues, namespaces and the project. That Autopilot's example sets nodePoolAutoCreation too is why it is set there:
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/autopilot-gpus. The reference of the field speaks of Standard alone.

    Raises ValueError for what GKE's definition of the object would refuse, before anything is registered.
    """

    name: pulumi.Output[str]
    """The class's name."""

    def __init__(self, name: str, args: ComputeClassArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        _check(name, args)
        autopilot = args.get("autopilot", False)
        priorities = [
            priority(f"ComputeClass {name}: rungs[{place}]", rung, autopilot=autopilot) for place, rung in enumerate(args["rungs"])
        ]
        super().__init__("flexspot:index:ComputeClass", name, {**args}, opts)
        creates = any(map(makes_pools, args["rungs"]))
        # Autopilot has one image and streams it; GKE documents both fields for Standard.
        image = {} if autopilot else {"imageType": "cos_containerd", "imageStreaming": {"enabled": True}}
        # GKE's autoscaler puts them on the pools that it makes (GoogleCloudPlatform/cluster-autoscaler); on Autopilot this is not verified.
        owner_labels = args.get("owner_labels", {})
        owners = {"nodeLabels": dict(owner_labels)} if owner_labels else {}
        nodes = {"serviceAccount": args.get("service_account"), **owners, **image}
        CustomResource(
            f"{name}-compute-class",
            api_version=API_VERSION,
            kind="ComputeClass",
            metadata=ObjectMetaArgs(name=args["name"], labels=args.get("labels")),
            # What has a default is written out: the server fills it in, and it would show as a change in every later preview.
            spec={
                "priorities": priorities,
                "nodePoolAutoCreation": {"enabled": creates},
                **({"nodePoolConfig": nodes} if creates else {}),
                "whenUnsatisfiable": "DoNotScaleUp",
                "activeMigration": {"optimizeRulePriority": args.get("optimize_rule_priority", False)},
                "autoscalingPolicy": {"consolidationDelayMinutes": args.get("consolidation_delay_minutes", 10)},
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = pulumi.Output.from_input(args["name"])
        self.register_outputs({"name": self.name})


def _check(name: str, args: ComputeClassArgs) -> None:
    where = f"ComputeClass {name}"
    if not _NAME.fullmatch(args["name"]):
        raise ValueError(f"{where}: name is {args['name']}; it is up to 63 lower-case letters, digits and inner hyphens; rename the class")
    if not args["rungs"]:
        raise ValueError(f"{where}: rungs is empty; a class has at least one; name a pool, as in {{pools: [POOL]}}")
    delay = args.get("consolidation_delay_minutes", 10)
    if not 1 <= delay <= _LONGEST_DELAY_MINUTES:
        raise ValueError(f"{where}: consolidation_delay_minutes is {delay}; GKE takes 1 to {_LONGEST_DELAY_MINUTES}; use one of these")
    creates, account = any(map(makes_pools, args["rungs"])), args.get("service_account")
    if creates and account is None:
        raise ValueError(f"{where}: service_account is missing; pools that GKE makes would run as the project's default one; name one")
    if not creates and account is not None:
        raise ValueError(f"{where}: service_account is given; every rung names existing pools, which have their own; leave it out")
