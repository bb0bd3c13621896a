"""What Karpenter's controller is in AWS: a role, its policies, and the pods that may take it."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
import re
from typing import NotRequired, TypedDict

import pulumi
from pulumi_aws import eks, iam

from capacity.values.names import RESOURCE_NAME
from components.aws_names import (
    NAMESPACE,
    QUEUE_NAME_CHARACTERS,
    ROLE_NAME_LENGTH,
    SERVICE_ACCOUNT,
    check_cluster_name,
    check_form,
    check_place,
    controller_policy_name,
    controller_role_name,
)
from components.iam import Document, as_json, pod_trust
from components.karpenter.controller_policies import ControllerScope, controller_policies

_ROLE = re.compile(rf"[\w+=,.@-]{{1,{ROLE_NAME_LENGTH}}}", re.ASCII)
_QUEUE = re.compile(rf"[A-Za-z0-9_-]{{1,{QUEUE_NAME_CHARACTERS}}}")


class KarpenterControllerIdentityArgs(TypedDict):
    """Arguments of KarpenterControllerIdentity. All but `cluster_name` are plain, so that a preview shows each policy whole."""

    cluster: str
    """The cluster's name, 1 to 100 characters."""

    cluster_name: pulumi.Input[str]
    """The same name, known when the cluster exists: an output of the cluster, for which the association waits."""

    account: str
    """The id of the cluster's account: 12 digits, in quotes."""

    region: str
    """The cluster's region, such as us-east-1; the association is made there whatever the provider's own region is."""

    node_role_name: str
    """The name of the role that Karpenter's nodes run as, the only one that the controller may pass: `node_role_name(cluster)`."""

    queue_name: str
    """The name of the interruption queue, the only one that it may read: `queue_name(cluster)`."""

    tags: dict[str, str]
    """Tags of the role, its policies and the association."""

    partition: NotRequired[str]
    """aws, aws-cn or aws-us-gov; the one that `region` is in. Default: aws."""

    namespace: NotRequired[str]
    """The namespace of the controller's pods. Default: kube-system."""

    service_account: NotRequired[str]
    """The service account of the controller's pods. Default: karpenter."""


class KarpenterControllerIdentity(pulumi.ComponentResource):
    """A role for Karpenter v1.14's controller with the six policies that upstream gives it, taken through EKS Pod Identity.

    The cluster needs the add-on eks-pod-identity-agent. The role is taken by pods of this cluster, namespace and service account alone:
    EKS sends them as request tags, which the trust policy asks for (EKS user guide, "Create IAM role with trust policy required by EKS
    Pod Identity"). The guide documents no aws:SourceArn for it, and roles with one were reported not to be taken
    (awslabs/mountpoint-s3-csi-driver issue 781); the cluster's ARN among the tags holds the account as well. So the association's session
    tags must stay on, which is their default.

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
        child = pulumi.ResourceOptions(parent=self)
        role = iam.Role(
            f"{name}-role",
            name=controller_role_name(scope.cluster),
            description=f"Karpenter's controller in the cluster {scope.cluster}",
            assume_role_policy=pod_trust(scope.cluster_arn, namespace, service_account),
            tags=args["tags"],
            opts=child,
        )
        attached = [
            _attached(f"{name}-{_logical(key)}", controller_policy_name(key, scope.cluster), document, role, args["tags"], child)
            for key, document in documents.items()
        ]
        association = eks.PodIdentityAssociation(
            f"{name}-association",
            cluster_name=args["cluster_name"],
            region=args["region"],
            namespace=namespace,
            service_account=service_account,
            role_arn=role.arn,
            tags=args["tags"],
            opts=child,
        )
        self.role_arn = pulumi.Output.all(role.arn, association.id, *(each.id for each in attached)).apply(lambda known: known[0])
        self.register_outputs({"role_arn": self.role_arn})


def _attached(  # noqa: PLR0913, PLR0917 -- what two resources are made of
    name: str, policy_name: str, document: Document, role: iam.Role, tags: dict[str, str], opts: pulumi.ResourceOptions
) -> iam.RolePolicyAttachment:
    policy = iam.Policy(f"{name}-policy", name=policy_name, policy=as_json(document), tags=tags, opts=opts)
    return iam.RolePolicyAttachment(f"{name}-attachment", role=role.name, policy_arn=policy.arn, opts=opts)


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
            f"{where} node_role_name is {args['node_role_name']!r}; allowed are 1 to {ROLE_NAME_LENGTH} letters, digits and _+=,.@-; "
            "use node_role_name(cluster)"
        )
    if not _QUEUE.fullmatch(args["queue_name"]):
        raise ValueError(
            f"{where} queue_name is {args['queue_name']!r}; allowed are 1 to {QUEUE_NAME_CHARACTERS} letters, digits, hyphens and "
            "underscores; use queue_name(cluster)"
        )
    check_form(f"{where} namespace", args.get("namespace", ""), RESOURCE_NAME)
    check_form(f"{where} service_account", args.get("service_account", ""), RESOURCE_NAME)
    return ControllerScope(
        cluster=args["cluster"],
        account=args["account"],
        partition=partition,
        region=args["region"],
        node_role_name=args["node_role_name"],
        queue_name=args["queue_name"],
    )
