"""Karpenter itself, by its charts, and what its controller and its nodes are in AWS."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import re
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_aws import eks, iam

from flexspot.capacity.catalog.node_labels import KARPENTER_POOL_LABEL
from flexspot.capacity.catalog.platform import PARTITIONS
from flexspot.capacity.catalog.versions import Chart, shipped_versions
from flexspot.capacity.settings.cluster import EksClusterSettings
from flexspot.capacity.settings.controllers import KarpenterSize
from flexspot.capacity.values.names import CHART_VERSION, RESOURCE_NAME
from flexspot.components.cloud_names import (
    NAMESPACE,
    QUEUE_NAME_CHARACTERS,
    ROLE_NAME_LENGTH,
    SERVICE_ACCOUNT,
    check_choice,
    check_cluster_name,
    check_form,
    check_place,
    controller_policy_name,
    controller_role_name,
    managed_policy,
    node_role_name,
)
from flexspot.components.eks.system_nodes import CRITICAL_ADDONS, SYSTEM_LABEL
from flexspot.components.iam import PodRoleShape, ec2_trust, pod_role
from flexspot.components.in_cluster import chart_release
from flexspot.components.karpenter.controller_policies import ControllerScope, controller_policies
from flexspot.components.shared_args import RoleOptionsArgs, check_role_options, publish

MANAGED_POLICIES = {
    "worker-node": "AmazonEKSWorkerNodePolicy",
    "image-reader": "AmazonEC2ContainerRegistryPullOnly",
    "session-manager": "AmazonSSMManagedInstanceCore",
}
"""AWS's policies that nodes have: to join, to pull images, to be reached without SSH."""

CNI_POLICY = "AmazonEKS_CNI_Policy"
"""To give pods addresses. Karpenter v1.14's template gives it to nodes too, and with them to every pod on the host's network; the add-on
vpc-cni has it by an identity of its own (EKS user guide, "Amazon EKS node IAM role")."""


class KarpenterNodeIdentityArgs(RoleOptionsArgs):
    """Arguments of KarpenterNodeIdentity."""

    cluster: str
    """The cluster's name, 1 to 100 characters; plain, because the role's name is made from it."""

    cluster_name: pulumi.Input[str]
    """The same name as an output of the cluster: the access entry waits for it."""

    tags: dict[str, str]
    """Tags of the role and the access entry."""

    partition: NotRequired[str]
    """aws, aws-cn or aws-us-gov. Default: aws."""

    cni_policy: NotRequired[bool]
    """Whether nodes assign pod addresses with their own role, for a CNI without its own identity. Default: False."""


class KarpenterNodeIdentity(pulumi.ComponentResource):
    """The IAM role of the nodes that Karpenter launches, and the access entry with which they join.

    Karpenter creates the instance profile itself from the role's name. The entry is of type EC2_LINUX, which gives nodes their groups and
    user name; EKS accepts no others beside it. Only EC2 may assume the role. The v1.14 template also lets pods assume it
    (pods.eks.amazonaws.com), which nothing here needs and which would give a pod its node's permissions.

    Raises ValueError for a name or partition that AWS would refuse. Nothing here was applied to a live account.
    """

    role_name: pulumi.Output[str]
    """The role's name for EC2NodeClass, known once its policies and its entry exist: nodes that start before could not join."""

    role_arn: pulumi.Output[str]
    """The role's ARN, known at the same time."""

    def __init__(self, name: str, args: KarpenterNodeIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where = f"KarpenterNodeIdentity {name}:"
        partition = args.get("partition", "aws")
        policies = MANAGED_POLICIES | ({"cni": CNI_POLICY} if args.get("cni_policy", False) else {})
        check_cluster_name(where, args["cluster"])
        check_choice(f"{where} partition", partition, list(PARTITIONS))
        check_role_options(where, args.get("iam_path"), args.get("permissions_boundary"))
        super().__init__("flexspot:index:KarpenterNodeIdentity", name, {**args, "partition": partition}, opts)
        child = pulumi.ResourceOptions(parent=self)
        role = iam.Role(
            f"{name}-role",
            name=node_role_name(args["cluster"]),
            path=args.get("iam_path"),
            permissions_boundary=args.get("permissions_boundary"),
            description=f"Karpenter's nodes in the cluster {args['cluster']}",
            assume_role_policy=ec2_trust(partition),
            tags=args["tags"],
            opts=child,
        )
        attached = [
            iam.RolePolicyAttachment(f"{name}-{key}", role=role.name, policy_arn=managed_policy(partition, policy), opts=child)
            for key, policy in policies.items()
        ]
        entry = eks.AccessEntry(
            f"{name}-access", cluster_name=args["cluster_name"], principal_arn=role.arn, type="EC2_LINUX", tags=args["tags"], opts=child
        )
        joined = [entry.id, *(each.id for each in attached)]
        self.role_name = pulumi.Output.all(role.name, *joined).apply(lambda known: known[0])
        self.role_arn = pulumi.Output.all(role.arn, *joined).apply(lambda known: known[0])
        publish(self)


_ROLE = re.compile(rf"[\w+=,.@-]{{1,{ROLE_NAME_LENGTH}}}", re.ASCII)
_QUEUE = re.compile(rf"[A-Za-z0-9_-]{{1,{QUEUE_NAME_CHARACTERS}}}")


class KarpenterControllerIdentityArgs(RoleOptionsArgs):
    """Arguments of KarpenterControllerIdentity. All but `cluster_name` are plain, so that a preview shows each policy whole."""

    cluster: str
    """The cluster's name, 1 to 100 characters."""

    cluster_name: pulumi.Input[str]
    """The cluster's name as an output of the cluster: the association waits for it."""

    account: str
    """Id of the cluster's account: 12 digits, in quotes."""

    region: str
    """The cluster's region, such as us-east-1; the association is created there, whatever the provider's own region is."""

    node_role_name: str
    """Name of the IAM role of Karpenter's nodes, the only role that the controller may pass: `node_role_name(cluster)`."""

    queue_name: str
    """Name of the interruption queue, the only queue that it may read: `queue_name(cluster)`."""

    tags: dict[str, str]
    """Tags of the role, its policies and the association."""

    partition: NotRequired[str]
    """Partition of `region`: aws, aws-cn or aws-us-gov. Default: aws."""

    namespace: NotRequired[str]
    """The namespace of the controller's pods. Default: kube-system."""

    service_account: NotRequired[str]
    """The service account of the controller's pods. Default: karpenter."""


class KarpenterControllerIdentity(pulumi.ComponentResource):
    """An IAM role for Karpenter v1.14's controller, with upstream's six policies and one more, through EKS Pod Identity.

    The seventh policy lets EC2 create the account's service-linked role for Spot, AWSServiceRoleForEC2Spot, when the first Spot instance is
    launched.

    The cluster needs the add-on eks-pod-identity-agent. Only pods of this cluster, namespace and service account can assume the role: EKS
    sends them as request tags, which the trust policy requires (EKS user guide, "Create IAM role with trust policy required by EKS Pod
    Identity"). The guide documents no aws:SourceArn for it, and roles with one reportedly could not be assumed
    (awslabs/mountpoint-s3-csi-driver issue 781); the cluster's ARN among the tags also fixes the account. The association's session tags
    must therefore stay on, which is their default.

    Raises ValueError for names, account, partition or region that AWS would refuse, a region of another partition, and policies that are
    too long for IAM. Nothing here was applied to a live account.
    """

    role_arn: pulumi.Output[str]
    """The role's ARN, known once its policies are attached and the pods are bound to it: what runs before could do nothing."""

    def __init__(self, name: str, args: KarpenterControllerIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        resolved: KarpenterControllerIdentityArgs = {
            **args,
            "partition": args.get("partition", "aws"),
            "namespace": args.get("namespace", NAMESPACE),
            "service_account": args.get("service_account", SERVICE_ACCOUNT),
        }
        scope = _scope(name, resolved)
        documents = controller_policies(scope)
        namespace, service_account = resolved.get("namespace", ""), resolved.get("service_account", "")
        super().__init__("flexspot:index:KarpenterControllerIdentity", name, {**resolved}, opts)
        granted = pod_role(
            name,
            PodRoleShape(
                name=controller_role_name(scope.cluster),
                description=f"Karpenter's controller in the cluster {scope.cluster}",
                cluster_arn=scope.cluster_arn,
                cluster_name=args["cluster_name"],
                region=args["region"],
                namespace=namespace,
                service_account=service_account,
                policies={
                    f"{name}-{_logical(key)}": (controller_policy_name(key, scope.cluster), document) for key, document in documents.items()
                },
                tags=args["tags"],
                iam_path=scope.iam_path,
                permissions_boundary=args.get("permissions_boundary"),
            ),
            self,
        )
        self.role_arn = pulumi.Output.all(granted.role.arn, *(each.id for each in granted.grants)).apply(lambda known: known[0])
        publish(self)


def _logical(policy: str) -> str:
    """NodeLifecycle as it stands in a logical name: node-lifecycle."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", policy).lower()


def _scope(name: str, args: KarpenterControllerIdentityArgs) -> ControllerScope:
    """What the policies are limited to. Raises ValueError for what AWS would refuse."""
    where = f"KarpenterControllerIdentity {name}:"
    partition = args.get("partition", "")
    check_cluster_name(where, args["cluster"])
    check_place(where, args["account"], partition, args["region"])
    # A wildcard or a slash in either name would widen what the controller may pass or read.
    if not _ROLE.fullmatch(args["node_role_name"]):
        raise ValueError(
            f"{where} node_role_name is {args['node_role_name']!r}; it must be 1 to {ROLE_NAME_LENGTH} letters, digits and _+=,.@-; "
            "use node_role_name(cluster)"
        )
    if not _QUEUE.fullmatch(args["queue_name"]):
        raise ValueError(
            f"{where} queue_name is {args['queue_name']!r}; it must be 1 to {QUEUE_NAME_CHARACTERS} letters, digits, hyphens and "
            "underscores; use queue_name(cluster)"
        )
    check_form(f"{where} namespace", args.get("namespace", ""), RESOURCE_NAME)
    check_form(f"{where} service_account", args.get("service_account", ""), RESOURCE_NAME)
    check_role_options(where, args.get("iam_path"), args.get("permissions_boundary"))
    return ControllerScope(
        cluster=args["cluster"],
        account=args["account"],
        partition=partition,
        region=args["region"],
        node_role_name=args["node_role_name"],
        queue_name=args["queue_name"],
        iam_path=args.get("iam_path"),
    )


REGISTRY = "oci://public.ecr.aws/karpenter"


class KarpenterControllerArgs(TypedDict):
    """Arguments of KarpenterController."""

    cluster_name: pulumi.Input[str]
    """The cluster's name, known once the cluster exists."""

    cluster_endpoint: pulumi.Input[str]
    """URL of the cluster's API server, to which new nodes connect."""

    queue_name: pulumi.Input[str]
    """Name of the interruption queue, as an output of InterruptionQueue: the release waits for it."""

    replicas: NotRequired[int]
    """Replicas, of which one is active; at least 1, and at most the number of system nodes, because no two share one. Default: 2."""

    cpu: NotRequired[str]
    """CPU request and limit of each replica, as a Kubernetes quantity. Default: 1."""

    memory: NotRequired[str]
    """Memory request and limit of each replica, as a Kubernetes quantity; hundreds of nodes need several GiB. Default: 1Gi."""

    version: NotRequired[str]
    """Version of both charts. Default: that of flexspot/capacity/catalog/versions.yaml."""

    node_repair: NotRequired[bool]
    """Whether Karpenter forcibly replaces a node that it, or the node monitoring agent, has reported as broken for ten to thirty
    minutes, whatever runs there, and for at most a fifth of a NodePool's nodes. An alpha feature of Karpenter. Default: True."""


class KarpenterController(pulumi.ComponentResource):
    """Karpenter from its released charts: the CRD chart first, because Helm never upgrades CRDs inside another chart.

    The charts come from the registry, not from the Go module of the same version, whose copies are stamped 1.13.0 and name that image.

    It runs only on the system nodes, as the service account that KarpenterControllerIdentity binds (make this depend on it, and on the
    system nodes): on nodes of its own it could remove the node that it runs on. Feature gates are written out, so that a chart upgrade does
    not change them: reserved capacity is on, as upstream, and node repair.

    Raises ValueError for fewer than one replica and for an invalid chart version. The values are checked against the chart's own; no
    release was made in a live cluster.
    """

    version: pulumi.Output[str]
    """The version that is installed, known when its CRDs and its controller are there: what makes NodePools waits for it."""

    def __init__(self, name: str, args: KarpenterControllerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        replicas = args.get("replicas", KarpenterSize.default("replicas"))
        if replicas < 1:
            raise ValueError(f"KarpenterController {name}: replicas is {replicas}; it must be at least 1; leave it out for 2")
        version = args.get("version", shipped_versions().chart(Chart.KARPENTER).version)
        check_form(f"KarpenterController {name}: version", version, CHART_VERSION)
        super().__init__("flexspot:index:KarpenterController", name, {**args}, opts)
        crds = chart_release(f"{name}-crds", f"{REGISTRY}/karpenter-crd", version, {}, pulumi.ResourceOptions(parent=self), skip_crds=False)
        after_crds = pulumi.ResourceOptions(parent=self, depends_on=[crds])
        # Definitions are those of the first release; this one's chart may hold them as well.
        controller = chart_release(f"{name}-release", f"{REGISTRY}/karpenter", version, chart_values(args), after_crds, skip_crds=True)
        self.version = pulumi.Output.all(controller.version, crds.id, controller.id).apply(lambda known: known[0] or version)
        publish(self)


def chart_values(args: KarpenterControllerArgs) -> dict[str, Any]:
    """What is said to the chart; all else is its own: images, ports, priority, the budget of disruptions, the spread over zones."""
    size = KarpenterSize()
    resources = {"cpu": args.get("cpu", size.cpu), "memory": args.get("memory", size.memory)}
    return {
        "replicas": args.get("replicas", size.replicas),
        "serviceAccount": {"create": True, "name": SERVICE_ACCOUNT},
        "nodeSelector": {"kubernetes.io/os": "linux", SYSTEM_LABEL: "true"},
        "tolerations": [{"key": CRITICAL_ADDONS, "operator": "Exists"}],
        # The chart's own, restated because all depends on it. The rule that no two copies share a node is left to the chart.
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": KARPENTER_POOL_LABEL, "operator": "DoesNotExist"}]}]
                }
            }
        },
        "controller": {"resources": {"requests": resources, "limits": resources}},
        "settings": {
            "clusterName": args["cluster_name"],
            "clusterEndpoint": args["cluster_endpoint"],
            "interruptionQueue": args["queue_name"],
            "enableZonalShift": False,
            "featureGates": {
                "nodeRepair": args.get("node_repair", EksClusterSettings.default("node_repair")),
                "nodeOverlay": False,
                "reservedCapacity": True,
                "spotToSpotConsolidation": False,
                "staticCapacity": False,
                "capacityBuffer": False,
            },
        },
    }
