"""A team's namespace, with what holds in it: quotas, defaults, who may do what, what may connect to what."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
import pulumi
from pulumi_kubernetes.core.v1 import (
    LimitRange,
    LimitRangeItemArgs,
    LimitRangeSpecArgs,
    Namespace,
    ResourceQuota,
    ResourceQuotaSpecArgs,
    ScopedResourceSelectorRequirementArgs,
    ScopeSelectorArgs,
    Service,
    ServiceAccount,
    ServiceSpecArgs,
)
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs
from pulumi_kubernetes.networking.v1 import NetworkPolicy
from pulumi_kubernetes.rbac.v1 import Role, RoleBinding, RoleRefArgs, SubjectArgs

from capacity.catalog.node_labels import GPU_QUOTA
from capacity.values.quantities import count_quantity
from capacity.workloads.names import GANG_SELECTOR, GANG_SERVICE, SERVICE_ACCOUNT
from components.tenancy.access import SUBMIT, VIEW, submit_rules, view_rules
from components.tenancy.network import isolation
from components.tenancy.pod_security import restricted
from components.tenancy.team_args import TeamArgs, check_team

_DEFAULT_REQUEST = {"cpu": "250m", "memory": "512Mi"}
_DEFAULT_LIMIT = {"cpu": "1", "memory": "2Gi"}


class Team(pulumi.ComponentResource):
    """A namespace in which a team can hold no more than it may, run nothing with privileges, and connect to no other team.

    - **Quota** on `requests.nvidia.com/gpu` (Kubernetes takes `limits.nvidia.com/gpu` and never counts it), pods, Jobs and storage, and a
      second one on the GPUs of work that waits in no queue, by PriorityClass.
    - **LimitRange** of cpu and memory alone: a default of a GPU would give one to every container, sidecars included. A container without a
      limit gets the largest that is allowed: with a smaller one, all that request more and name no limit would be refused.
    - **Pod Security** `restricted`, enforced, and told in warnings and the audit log.
    - **Roles** `submit` and `view`, bound to the groups given.
    - **NetworkPolicy**: nothing in or out but what `isolation` lists. A service that others call needs a policy of its own beside it.
    - **Service** `flexspot-gang`, headless: pods that train together have names in it. The team's members may make none themselves, since a
      Service can take traffic that is not theirs.
    - **Service account** `workloads`, without a Kubernetes token in its pods: GKE's metadata server knows a pod by its address, and EKS's
      agent by a token that EKS mounts by itself; neither needs this one. The account `default` is Kubernetes' own: it makes one in each
      namespace, and a program that creates it fails. A pod that names no account has its token, to which nothing is bound.

    Raises ValueError for a quota without a ceiling in GPUs or with one that is not counted, negative ones, and groups of the cluster's own.
    """

    namespace: pulumi.Output[str]
    """The namespace's name, known once it exists."""

    service_account: pulumi.Output[str]
    """The name of the service account whose pods act as the team in the cloud, known once it exists."""

    def __init__(self, name: str, args: TeamArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        check_team(name, args)
        super().__init__("flexspot:index:Team", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        namespace = Namespace(
            f"{name}-namespace", metadata=ObjectMetaArgs(name=args["namespace"], labels={**args["labels"], **restricted()}), opts=child
        )
        self.namespace = namespace.metadata.apply(lambda metadata: str(metadata.name))

        # By its plain name, so that a first preview, and the policies in it, know which namespace an object is of.
        inside = pulumi.ResourceOptions(parent=self, depends_on=[namespace])

        def named(own: str) -> ObjectMetaArgs:
            return ObjectMetaArgs(name=own, namespace=args["namespace"], labels=args["labels"])

        ResourceQuota(f"{name}-quota", metadata=named("team"), spec=ResourceQuotaSpecArgs(hard=args["hard"]), opts=inside)
        unqueued = args.get("unqueued")
        if unqueued is not None:
            spec = _unqueued_quota(unqueued["gpus"], unqueued["priority_classes"])
            ResourceQuota(f"{name}-unqueued", metadata=named("unqueued"), spec=spec, opts=inside)
        LimitRange(f"{name}-containers", metadata=named("containers"), spec=_limit_range(args), opts=inside)
        NetworkPolicy(f"{name}-isolation", metadata=named("isolation"), spec=isolation(args.get("endpoints", [])), opts=inside)
        Service(
            f"{name}-gang",
            # There is nothing to wait for: it stands for pods that somebody may start one day.
            metadata=ObjectMetaArgs(
                name=GANG_SERVICE, namespace=args["namespace"], labels=args["labels"], annotations={"pulumi.com/skipAwait": "true"}
            ),
            # Pods wait for each other to become ready, and need the names before.
            spec=ServiceSpecArgs(cluster_ip="None", publish_not_ready_addresses=True, selector=GANG_SELECTOR),
            opts=inside,
        )
        for role, rules, groups in (
            (SUBMIT, submit_rules(), args.get("submitters", [])),
            (VIEW, view_rules(), args.get("viewers", [])),
        ):
            made = Role(f"{name}-{role}", metadata=named(role), rules=rules, opts=inside)
            if groups:
                RoleBinding(
                    f"{name}-{role}-binding",
                    metadata=named(role),
                    role_ref=RoleRefArgs(api_group=_RBAC, kind="Role", name=role),
                    subjects=[SubjectArgs(api_group=_RBAC, kind="Group", name=group) for group in sorted(set(groups))],
                    opts=pulumi.ResourceOptions(parent=self, depends_on=[made]),
                )
        workloads = ServiceAccount(
            f"{name}-workloads",
            metadata=ObjectMetaArgs(
                name=SERVICE_ACCOUNT,
                namespace=args["namespace"],
                labels=args["labels"],
                annotations=args.get("service_account_annotations") or None,
            ),
            automount_service_account_token=False,
            opts=inside,
        )
        self.service_account = workloads.metadata.apply(lambda metadata: str(metadata.name))
        self.register_outputs({"namespace": self.namespace, "service_account": self.service_account})


_RBAC = "rbac.authorization.k8s.io"


def _unqueued_quota(gpus: int, priority_classes: list[str]) -> ResourceQuotaSpecArgs:
    classes = ScopedResourceSelectorRequirementArgs(scope_name="PriorityClass", operator="In", values=sorted(set(priority_classes)))
    return ResourceQuotaSpecArgs(hard={GPU_QUOTA: count_quantity(gpus)}, scope_selector=ScopeSelectorArgs(match_expressions=[classes]))


def _limit_range(args: TeamArgs) -> LimitRangeSpecArgs:
    limits = args.get("container_limits")
    most = None if limits is None else {"cpu": limits["cpu"], "memory": limits["memory"]}
    # Without a default beside it, the API server would make one of the maximum, and a request of it too.
    item = LimitRangeItemArgs(type="Container", max=most, default=most or _DEFAULT_LIMIT, default_request=_DEFAULT_REQUEST)
    return LimitRangeSpecArgs(limits=[item])
