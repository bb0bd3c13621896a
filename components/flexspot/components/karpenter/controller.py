"""Karpenter: its charts and AWS identities, or an existing installation that others run."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_aws import eks, iam

from flexspot.capacity.catalog.node_labels import KARPENTER_POOL_LABEL
from flexspot.capacity.catalog.platform import PARTITIONS
from flexspot.capacity.catalog.versions import Chart, minor_version, shipped_versions, version_order
from flexspot.capacity.settings.cluster import EksClusterSettings
from flexspot.capacity.settings.controllers import KarpenterSize
from flexspot.capacity.values.errors import SettingsProblem
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
from flexspot.components.in_cluster import ReadObject, answered, chart_release
from flexspot.components.karpenter.controller_policies import ControllerScope, controller_policies
from flexspot.components.shared_args import RoleOptionsArgs, check_role_options, publish, refuse

MANAGED_POLICIES = {
    "worker-node": "AmazonEKSWorkerNodePolicy",
    "image-reader": "AmazonEC2ContainerRegistryPullOnly",
    "session-manager": "AmazonSSMManagedInstanceCore",
}
"""AWS managed policies of nodes: to join the cluster, to pull images, and to be reached without SSH."""

CNI_POLICY = "AmazonEKS_CNI_Policy"
"""Policy for assigning addresses to pods. Karpenter v1.14's template gives it to nodes, and so to every pod on the host's network.

Here the add-on vpc-cni has it through a separate identity (EKS user guide, "Amazon EKS node IAM role").
"""


class KarpenterNodeIdentityArgs(RoleOptionsArgs):
    """Arguments of KarpenterNodeIdentity."""

    cluster: str
    """The cluster's name, 1 to 100 characters. It is plain because the role's name is built from it."""

    cluster_name: pulumi.Input[str]
    """The same name as an output of the cluster, so that the access entry waits for it."""

    tags: dict[str, str]
    """Tags of the role and the access entry."""

    partition: NotRequired[str]
    """aws, aws-cn or aws-us-gov. Default: aws."""

    cni_policy: NotRequired[bool]
    """If true, nodes assign pod addresses with their own role, for a CNI without its own identity. Default: False."""


class KarpenterNodeIdentity(pulumi.ComponentResource):
    """The IAM role of the nodes that Karpenter launches, and the access entry with which they join.

    Karpenter creates the instance profile itself from the role's name. The entry has the type EC2_LINUX, which gives nodes their groups and
    user name; EKS accepts no other groups with it. Only EC2 may assume the role. The v1.14 template also lets pods assume it
    (pods.eks.amazonaws.com), which nothing here needs and which would give a pod its node's permissions.

    Raises ValueError for a name or partition that AWS would reject. This component has not been deployed to a live account.
    """

    role_name: pulumi.Output[str]
    """The role's name for EC2NodeClass, known once its policies and its entry exist, because nodes that start earlier could not join."""

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
    """Arguments of KarpenterControllerIdentity. All but `cluster_name` are plain, so that a preview shows every policy in full."""

    cluster: str
    """The cluster's name, 1 to 100 characters."""

    cluster_name: pulumi.Input[str]
    """The cluster's name as an output of the cluster, so that the association waits for it."""

    account: str
    """Id of the cluster's account: 12 digits, in quotes."""

    region: str
    """The cluster's region, such as us-east-1. The association is created there, regardless of the provider's region."""

    node_role_name: str
    """Name of the IAM role of Karpenter's nodes, the only role that the controller may pass: `node_role_name(cluster)`."""

    queue_name: str
    """Name of the interruption queue, the only queue that the controller may read: `queue_name(cluster)`."""

    tags: dict[str, str]
    """Tags of the role, its policies and the association."""

    partition: NotRequired[str]
    """Partition of `region`: aws, aws-cn or aws-us-gov. Default: aws."""

    namespace: NotRequired[str]
    """The namespace of the controller's pods. Default: kube-system."""

    service_account: NotRequired[str]
    """The service account of the controller's pods. Default: karpenter."""


class KarpenterControllerIdentity(pulumi.ComponentResource):
    """An IAM role for the controller of Karpenter v1.14, assumed through EKS Pod Identity, with upstream's six policies and a seventh.

    The seventh policy lets EC2 create the account's service-linked role for Spot, AWSServiceRoleForEC2Spot, when the first Spot instance is
    launched.

    The cluster needs the add-on eks-pod-identity-agent. Only pods of this cluster, namespace and service account can assume the role: EKS
    sends them as request tags, which the trust policy requires (EKS user guide, "Create IAM role with trust policy required by EKS Pod
    Identity"). The guide documents no aws:SourceArn for it, and roles with one reportedly could not be assumed
    (awslabs/mountpoint-s3-csi-driver issue 781). The cluster's ARN among the tags also fixes the account. The association's session tags
    must therefore stay on, which is their default.

    Raises ValueError for names, account, partition or region that AWS would reject, a region of another partition, and policies that are
    too long for IAM. This component has not been deployed to a live account.
    """

    role_arn: pulumi.Output[str]
    """The role's ARN, known once its policies are attached and the pods are bound to it. Pods that run earlier have no permissions."""

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
    """Return a policy's name in the form of a logical name: node-lifecycle for NodeLifecycle."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", policy).lower()


def _scope(name: str, args: KarpenterControllerIdentityArgs) -> ControllerScope:
    """Return the scope of the policies. Raises ValueError for values that AWS would reject."""
    where = f"KarpenterControllerIdentity {name}"
    partition = args.get("partition", "")
    check_cluster_name(f"{where}:", args["cluster"])
    check_place(f"{where}:", args["account"], partition, args["region"])
    # A wildcard or a slash in either name would widen the permissions to pass roles or to read queues.
    if not _ROLE.fullmatch(args["node_role_name"]):
        problem = f"must be 1 to {ROLE_NAME_LENGTH} letters, digits and _+=,.@-"
        refuse(where, SettingsProblem("node_role_name", repr(args["node_role_name"]), problem, "use node_role_name(cluster)"))
    if not _QUEUE.fullmatch(args["queue_name"]):
        form = f"must be 1 to {QUEUE_NAME_CHARACTERS} letters, digits, hyphens and underscores"
        refuse(where, SettingsProblem("queue_name", repr(args["queue_name"]), form, "use queue_name(cluster)"))
    check_form(f"{where}: namespace", args.get("namespace", ""), RESOURCE_NAME)
    check_form(f"{where}: service_account", args.get("service_account", ""), RESOURCE_NAME)
    check_role_options(f"{where}:", args.get("iam_path"), args.get("permissions_boundary"))
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
    """Name of the interruption queue, as an output of InterruptionQueue, so that the release waits for it."""

    replicas: NotRequired[int]
    """Number of replicas, of which one is active: 1 to the number of system nodes, because no two share one. Default: 2."""

    cpu: NotRequired[str]
    """CPU request and limit of each replica, as a Kubernetes quantity. Default: 1."""

    memory: NotRequired[str]
    """Memory request and limit of each replica, as a Kubernetes quantity. Hundreds of nodes need several GiB. Default: 1Gi."""

    version: NotRequired[str]
    """Version of both charts. Default: that of flexspot/capacity/catalog/versions.yaml."""

    node_repair: NotRequired[bool]
    """If true, Karpenter forcibly replaces a node that it or the node monitoring agent has reported as broken for ten to thirty minutes.

    Running work does not prevent it, and it affects at most a fifth of a NodePool's nodes. It is an alpha feature of Karpenter.

    Default: True."""


class KarpenterController(pulumi.ComponentResource):
    """Karpenter from its released charts: the CRD chart first, because Helm never upgrades CRDs inside another chart.

    The charts come from the registry, not from the Go module of the same version, whose copies have the version 1.13.0 and its image.

    It only runs on the system nodes, because on its own nodes it could remove the node that it runs on. Make it depend on the system nodes
    and on KarpenterControllerIdentity, which binds its service account. Feature gates are explicit, so that a chart upgrade does not change
    them: reserved capacity is on, as upstream, and node repair.

    Raises ValueError for fewer than one replica and for an invalid chart version. The values are checked against the chart's own. The
    release has not been installed in a live cluster.
    """

    version: pulumi.Output[str]
    """The installed version, known once its CRDs and its controller exist, so that NodePools wait for it."""

    def __init__(self, name: str, args: KarpenterControllerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where, replicas = f"KarpenterController {name}", args.get("replicas", KarpenterSize.default("replicas"))
        if replicas < 1:
            refuse(where, SettingsProblem("replicas", str(replicas), "must be at least 1", "leave it out for 2"))
        version = args.get("version", shipped_versions().chart(Chart.KARPENTER).version)
        check_form(f"{where}: version", version, CHART_VERSION)
        super().__init__("flexspot:index:KarpenterController", name, {**args}, opts)
        crds = chart_release(f"{name}-crds", f"{REGISTRY}/karpenter-crd", version, {}, pulumi.ResourceOptions(parent=self), skip_crds=False)
        after_crds = pulumi.ResourceOptions(parent=self, depends_on=[crds])
        # The definitions come from the first release. The chart of this one may contain them as well.
        controller = chart_release(f"{name}-release", f"{REGISTRY}/karpenter", version, chart_values(args), after_crds, skip_crds=True)
        self.version = pulumi.Output.all(controller.version, crds.id, controller.id).apply(lambda known: known[0] or version)
        publish(self)


def chart_values(args: KarpenterControllerArgs) -> dict[str, Any]:
    """Return the chart's values. Others keep the chart's defaults: images, ports, priority, disruption budget, spread over zones."""
    size = KarpenterSize()
    resources = {"cpu": args.get("cpu", size.cpu), "memory": args.get("memory", size.memory)}
    return {
        "replicas": args.get("replicas", size.replicas),
        "serviceAccount": {"create": True, "name": SERVICE_ACCOUNT},
        "nodeSelector": {"kubernetes.io/os": "linux", SYSTEM_LABEL: "true"},
        "tolerations": [{"key": CRITICAL_ADDONS, "operator": "Exists"}],
        # The chart's own, restated because all depends on it. The chart's rule that no two replicas share a node is not restated.
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


DEPLOYMENT, DEFINITION = "apps/v1:Deployment", "apiextensions.k8s.io/v1:CustomResourceDefinition"

NODE_CLASSES = "ec2nodeclasses.karpenter.k8s.aws"
"""Name of the CustomResourceDefinition of Karpenter's node classes."""

VERSION_LABEL = "app.kubernetes.io/version"
"""Label in which the chart writes Karpenter's version (charts/karpenter/templates/_helpers.tpl of v1.14.1)."""


class ExistingKarpenterArgs(TypedDict):
    """Arguments of ExistingKarpenter."""

    cluster: str
    """The cluster's name, as configured in Karpenter."""

    kubernetes_version: pulumi.Input[str]
    """The cluster's Kubernetes version. An empty string means unknown."""

    deployment: str
    """The Deployment of the controller, as NAMESPACE/NAME."""

    reserved: NotRequired[bool]
    """True if a pool uses a reservation, which Karpenter's feature gate ReservedCapacity can disable. Default: False."""

    fields: NotRequired[list[str]]
    """The fields of node class specs that are used. Default: none."""


@dataclass(frozen=True)
class FoundKarpenter:
    """Facts about the cluster's Karpenter. A field is None if it could not be read: all of them in an offline preview."""

    version: str | None
    environment: dict[str, str] | None
    """Environment variables of the controller. None if they come from elsewhere than the Deployment, as with a custom chart."""
    fields: frozenset[str] | None
    """Fields of a node class spec that the cluster's definition has."""
    kubernetes: str | None


def _version(metadata: dict[str, Any] | None) -> str | None:
    return ((metadata or {}).get("labels") or {}).get(VERSION_LABEL)


def _environment(spec: dict[str, Any] | None) -> dict[str, str] | None:
    """Return the variables of the container that has the cluster's name, or None if there is no such container."""
    containers = (((spec or {}).get("template") or {}).get("spec") or {}).get("containers") or []
    environments = [{each["name"]: each["value"] for each in container.get("env") or [] if each.get("value")} for container in containers]
    return next((each for each in environments if "CLUSTER_NAME" in each), None)


def _fields(spec: dict[str, Any] | None) -> frozenset[str] | None:
    """Return the spec fields of version v1 of a definition. They are empty if v1 is not served, and None if the spec was not read."""
    if spec is None:
        return None
    schemas = [each["schema"]["openAPIV3Schema"] for each in spec["versions"] if each["name"] == "v1" and each.get("served", True)]
    return frozenset(key for schema in schemas for key in schema["properties"]["spec"]["properties"])


def problems(args: ExistingKarpenterArgs, found: FoundKarpenter) -> Iterator[str]:
    """Yield why pools do not work with this Karpenter, and what fixes it. Facts that were not read are not checked."""
    called, settings = f"Karpenter in {args['deployment']}", "its owner sets {} in the values of its chart"
    table = shipped_versions().karpenter
    if found.version is not None:
        known, oldest = table.range_of(found.version), min(table.kubernetes, key=version_order)
        if version_order(minor_version(found.version)) < version_order(oldest):
            yield (
                f"{called} is {found.version}; its node pools and classes need {oldest} or newer; its owner upgrades the charts "
                "karpenter-crd and karpenter"
            )
        elif known is not None and found.kubernetes is not None and not known.has(found.kubernetes):
            yield (
                f"{called} is {found.version}, which works with Kubernetes {known.least} to {known.most}, and the cluster has "
                f"{found.kubernetes}; its owner upgrades Karpenter before the cluster"
            )
    if found.fields is not None and (missing := sorted({*args.get("fields", [])} - found.fields)):
        yield (
            f"the definition of EC2NodeClass on {args['cluster']} lacks {', '.join(missing)}, which the API server would silently drop; "
            f"its owner upgrades the chart karpenter-crd to {minor_version(table.chart.version)}, or leave out what needs it "
            "(pools.*.efa, pools.*.compact_placement, pools.*.reservation)"
        )
    environment = found.environment
    if environment is None:
        return
    if environment["CLUSTER_NAME"] != args["cluster"]:
        yield (
            f"{called} has the cluster's name {environment['CLUSTER_NAME']}, not {args['cluster']}; it must be the controller of "
            f"{args['cluster']} itself; name its Deployment, NAMESPACE/NAME, in cluster.existing_karpenter.deployment"
        )
    if not environment.get("INTERRUPTION_QUEUE"):
        yield (
            f"{called} has no interruption queue: it would not notice Spot interruptions, nor drain nodes in time; "
            + settings.format("settings.interruptionQueue")
        )
    if args.get("reserved") and "ReservedCapacity=false" in environment.get("FEATURE_GATES", ""):
        yield f"{called} has the feature gate ReservedCapacity off, and a pool is reserved; " + settings.format(
            "settings.featureGates.reservedCapacity"
        )


class ExistingKarpenter(pulumi.ComponentResource):
    """An existing Karpenter, which is only read and never changed. Its owner manages its version, its queue, the role of its nodes and the
    permissions to use that role.

    After reading it, also in a preview, the run ends with pulumi.RunError and one line per problem if it does not support the NodePools and
    node classes. Nothing that waits for `deployment` is then created. If the Deployment or Karpenter's CRDs do not exist, the provider ends
    the run. Raises ValueError for a `deployment` without its namespace.
    """

    deployment: pulumi.Output[str]
    """The Deployment's name, known once the checks have passed."""

    def __init__(self, name: str, args: ExistingKarpenterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where = f"ExistingKarpenter {name}"
        namespace, _, own = args["deployment"].partition("/")
        if not namespace or not own or "/" in own:
            problem, remedy = "must be NAMESPACE/NAME", "write it in full, such as kube-system/karpenter"
            refuse(where, SettingsProblem("deployment", repr(args["deployment"]), problem, remedy))
        super().__init__("flexspot:index:ExistingKarpenter", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        controller = ReadObject(f"{name}-controller", DEPLOYMENT, args["deployment"], child)
        definition = ReadObject(f"{name}-node-classes", DEFINITION, NODE_CLASSES, child)

        def checked_name(parts: dict[str, Any]) -> str:
            found = FoundKarpenter(**parts | {"kubernetes": parts["kubernetes"] or None})
            if messages := [f"{where}: {each}" for each in problems(args, found)]:
                # Not ValueError, which the SDK would wrap in the name and the address of every Output on its way.
                raise pulumi.RunError("\n".join(messages))
            return args["deployment"]

        self.deployment = pulumi.Output.all(
            version=answered(controller.metadata, _version),
            environment=answered(controller.spec, _environment),
            fields=answered(definition.spec, _fields),
            kubernetes=args["kubernetes_version"],
        ).apply(checked_name)
        publish(self)
