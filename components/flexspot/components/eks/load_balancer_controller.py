"""AWS's load balancer controller, which creates load balancers for Ingresses and for Services that request them."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import json
from functools import cache
from pathlib import Path
from typing import Any, NotRequired

import pulumi

from flexspot.capacity.catalog.versions import Chart, shipped_versions
from flexspot.capacity.settings.controllers import LoadBalancerControllerSize
from flexspot.components.cloud_names import (
    NAMESPACE,
    POLICY_NAME_CHARACTERS,
    check_aws_tags,
    check_cluster_name,
    check_place,
    cluster_arn,
    fitted,
)
from flexspot.components.eks.addons import EKS_CHARTS
from flexspot.components.eks.system_nodes import role_name
from flexspot.components.iam import PodRoleShape, PolicyDocument, pod_role
from flexspot.components.in_cluster import chart_release
from flexspot.components.shared_args import ControllerArgs, RoleOptionsArgs, check_role_options, checked_options, publish

NAME = "aws-load-balancer-controller"
"""Name of the chart, its release and its service account."""

CLUSTER_TAG = "elbv2.k8s.aws/cluster"
"""Tag of everything that the controller creates. Its value is the cluster's name (pkg/deploy/tracking/provider.go)."""

_UPSTREAM = Path(__file__).with_name("load_balancer_policy.json")
"""docs/install/iam_policy.json of kubernetes-sigs/aws-load-balancer-controller at 93ff3b5fdaad (version 3.2.2), unchanged."""


@cache
def upstream_policy() -> PolicyDocument:
    """Return upstream's policy. It is for the partition aws and for resources of the controllers of all clusters."""
    return json.loads(_UPSTREAM.read_text(encoding="utf-8"))


def controller_policy(cluster: str, partition: str) -> PolicyDocument:
    """Return upstream's policy for a partition, narrowed to one cluster.

    Upstream requires the tag of any cluster on resources that are changed or created. The controller of a development cluster may therefore
    delete production's load balancers in the same account. Its installation guide recommends narrowing that. Here the tag's value is
    required.
    """
    written = json.dumps(upstream_policy()).replace("arn:aws:", f"arn:{partition}:")
    document: PolicyDocument = json.loads(written)
    for statement in document["Statement"]:
        if "Condition" in statement:
            statement["Condition"] = _of_the_cluster(statement["Condition"], cluster)
    return document


def _of_the_cluster(conditions: Any, cluster: str) -> dict[str, Any]:
    """Require the cluster's name wherever a cluster's tag must exist. A missing tag equals nothing."""
    there = [key for key, absent in conditions.get("Null", {}).items() if absent == "false" and key.endswith(f"/{CLUSTER_TAG}")]
    absent = {key: value for key, value in conditions.get("Null", {}).items() if key not in there}
    equals = {**conditions.get("StringEquals", {}), **dict.fromkeys(there, cluster)}
    others = {operator: each for operator, each in conditions.items() if operator not in {"Null", "StringEquals"}}
    return others | ({"StringEquals": equals} if equals else {}) | ({"Null": absent} if absent else {})


class LoadBalancerControllerArgs(RoleOptionsArgs, ControllerArgs):
    """Arguments of LoadBalancerController. Sizes and their defaults are those of `controllers.load_balancer_controller` in the settings.

    Its role has the IAM policy of the default version.
    """

    cluster: str
    """The cluster's name. It is plain because the names of the role and its policy are built from it."""

    cluster_name: pulumi.Input[str]
    """The same name, known once the cluster exists."""

    account: str
    """Id of the cluster's account: 12 digits, in quotes."""

    region: str
    """The cluster's region."""

    vpc_id: pulumi.Input[str]
    """The cluster's VPC. The controller cannot look it up, because pods cannot reach the metadata service."""

    tags: dict[str, str]
    """Tags of the role, its policy, and every load balancer, target group and security group that the controller creates."""

    partition: NotRequired[str]
    """Partition of `region`: aws, aws-cn or aws-us-gov. Default: aws."""

    cpu_milli: NotRequired[int]
    """CPU request of each replica, in thousandths of a vCPU. Default: 100."""

    memory_mib: NotRequired[int]
    """Memory request and limit of each replica, in MiB. Default: 256."""


class LoadBalancerController(pulumi.ComponentResource):
    """The AWS Load Balancer Controller, installed from its chart, with its own IAM role through EKS Pod Identity.

    An Ingress of class `alb` gets an Application Load Balancer. A Service of type LoadBalancer gets a Network Load Balancer if it sets
    `loadBalancerClass: service.k8s.aws/nlb`. The chart's webhook that sets this on every new Service is off, because it would prevent the
    creation of any Service while no replica of the controller runs. Both are internal unless they say otherwise, as upstream.

    A finalizer, which the controller removes, deletes load balancers along with their Ingress or Service. Make everything that declares
    such objects, or a namespace that may contain some, depend on this component, so that it is deleted last.

    The cluster needs the add-on eks-pod-identity-agent. Subnets are discovered by the tags kubernetes.io/role/elb and
    kubernetes.io/role/internal-elb. Raises ValueError for values that AWS or the chart would reject. This component has not been deployed
    to a live account.
    """

    version: pulumi.Output[str]
    """The installed version, known once it runs."""

    def __init__(self, name: str, args: LoadBalancerControllerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where = f"LoadBalancerController {name}"
        size = checked_options(where, LoadBalancerControllerSize, args)
        partition = args.get("partition", "aws")
        check_cluster_name(f"{where}:", args["cluster"])
        check_place(f"{where}:", args["account"], partition, args["region"])
        check_role_options(f"{where}:", args.get("iam_path"), args.get("permissions_boundary"))
        check_aws_tags(where, args["tags"])
        version = size.version or shipped_versions().chart(Chart.LOAD_BALANCER_CONTROLLER).version
        super().__init__("flexspot:index:LoadBalancerController", name, {**args, "partition": partition}, opts)
        granted = pod_role(
            name,
            PodRoleShape(
                name=role_name(args["cluster"], "load-balancer-controller"),
                description=f"AWS's load balancer controller in the cluster {args['cluster']}",
                cluster_arn=cluster_arn(partition, args["region"], args["account"], args["cluster"]),
                cluster_name=args["cluster_name"],
                region=args["region"],
                namespace=NAMESPACE,
                service_account=NAME,
                policies={
                    name: (
                        fitted(f"{args['cluster']}-load-balancer-controller", POLICY_NAME_CHARACTERS),
                        controller_policy(args["cluster"], partition),
                    )
                },
                tags=args["tags"],
                iam_path=args.get("iam_path"),
                permissions_boundary=args.get("permissions_boundary"),
            ),
            self,
        )
        # Without its permissions it neither starts nor removes its finalizers.
        after_role = pulumi.ResourceOptions(parent=self, depends_on=granted.grants)
        release = chart_release(f"{name}-release", NAME, version, _values(args, size), after_role, repository=EKS_CHARTS)
        self.version = release.id.apply(lambda _: version)
        publish(self)


def _values(args: LoadBalancerControllerArgs, size: LoadBalancerControllerSize) -> dict[str, Any]:
    """Return the chart's values. Others keep the chart's defaults: images, probes, priority, and preferably one replica per node."""
    return {
        "clusterName": args["cluster_name"],
        "region": args["region"],
        "vpcId": args["vpc_id"],
        "replicaCount": size.replicas,
        "resources": {"requests": {"cpu": size.cpu, "memory": size.memory}, "limits": {"memory": size.memory}},
        # With one replica the chart creates no budget, which would block the drain of its node forever.
        "podDisruptionBudget": {"maxUnavailable": 1},
        "serviceAccount": {"create": True, "name": NAME},
        "nodeSelector": args.get("node_selector", {}),
        "tolerations": args.get("tolerations", []),
        "enableServiceMutatorWebhook": False,
        "defaultTags": args["tags"],
    }
