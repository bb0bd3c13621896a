"""A team's namespace with its quotas, defaults, roles and network policy."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from collections.abc import Iterable, Sequence
from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.core.v1 import (
    ConfigMap,
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
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs, LabelSelectorRequirementArgs, ObjectMetaArgs
from pulumi_kubernetes.networking.v1 import (
    IPBlockArgs,
    NetworkPolicy,
    NetworkPolicyEgressRuleArgs,
    NetworkPolicyIngressRuleArgs,
    NetworkPolicyPeerArgs,
    NetworkPolicyPortArgs,
    NetworkPolicySpecArgs,
)
from pulumi_kubernetes.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRuleArgs, Role, RoleBinding, RoleRefArgs, SubjectArgs

from flexspot.capacity.catalog.accelerators import BY_RESOURCE, NVIDIA
from flexspot.capacity.catalog.node_labels import GPU_QUOTA
from flexspot.capacity.plan.teams import CONFIG_MAP, KEY, SUBMIT, VIEW
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.values.quantities import count_quantity
from flexspot.capacity.workloads.requests import GANG_SELECTOR, GANG_SERVICE, SERVICE_ACCOUNT
from flexspot.components.shared_args import publish, refuse


class EndpointArgs(TypedDict):
    """A cloud address that the team's pods must reach, with ports and protocols."""

    cidr: str
    """The address as a CIDR range, such as 169.254.169.254/32."""

    protocols: list[str]
    """TCP, UDP or both."""

    ports: list[int]
    """The ports."""


class ContainerLimits(TypedDict):
    """Maximum per container, as Kubernetes quantities. There is no limit on GPUs, because none is safe in a LimitRange."""

    cpu: str
    """vCPUs, such as 16."""

    memory: str
    """Memory, such as 64Gi."""


class UnqueuedArgs(TypedDict):
    """Limits for work that waits in no queue."""

    gpus: int
    """Maximum GPUs at once, at least zero."""

    devices: NotRequired[dict[str, int]]
    """Maximum by resource name, if it is not only nvidia.com/gpu but also aws.amazon.com/neuron. Default: `gpus` are nvidia.com/gpu."""

    priority_classes: list[str]
    """The PriorityClasses whose pods count, at least one."""


class TeamArgs(TypedDict):
    """Arguments of Team."""

    namespace: str
    """The namespace's name."""

    labels: dict[str, str]
    """Labels of all of the team's objects, including its owner and team labels."""

    annotations: NotRequired[dict[str, str]]
    """Annotations of the namespace, such as those that admission policies read. Only users who may change namespaces change them.

    Default: none."""

    hard: dict[str, str]
    """Maximum for the namespace at once, by ResourceQuota key, as Kubernetes quantities.

    Must include `requests.nvidia.com/gpu`, with borrowed GPUs."""

    unqueued: NotRequired[UnqueuedArgs | None]
    """GPU limits for work without a queue. Default: only the limit in `hard`."""

    container_limits: NotRequired[ContainerLimits | None]
    """Maximum per container, which is also the default limit of a container that sets none.

    Default: no LimitRange maximum, and 1 CPU and 2 GiB for a container that sets none."""

    submitters: NotRequired[list[str]]
    """Groups whose members may start and end work and use port-forward, by their names in the cluster: on GKE a Google group's address,
    on EKS a group of an access entry. Default: none."""

    viewers: NotRequired[list[str]]
    """Groups whose members may view the namespace. Default: none."""

    own_claims: NotRequired[bool]
    """If true, submitters may create and delete PersistentVolumeClaims. Default: false.

    Only set it to true if the cluster's policies protect claims that the team did not create, such as those of its checkpoints: permission
    to delete one claim is permission to delete all."""

    cluster_queues: NotRequired[list[str]]
    """The team's ClusterQueues, which belong to no namespace. Submitters and viewers may read them and their quota. Default: none."""

    platform: NotRequired[str]
    """Platform data that the team's work needs, as written by flexspot.capacity.plan.teams, in a ConfigMap of the namespace.

    With it, `flexspot run` needs no stack file. Default: none."""

    endpoints: NotRequired[list[EndpointArgs]]
    """The cloud's own addresses, in addition to DNS servers in pods and HTTPS. Default: none."""

    service_account_annotations: NotRequired[dict[str, pulumi.Input[str]]]
    """Annotations of the service account `workloads`, such as iam.gke.io/gcp-service-account on GKE. Default: none, which suits EKS."""


def check_team(name: str, args: TeamArgs) -> None:
    """Raise ValueError for arguments that the cluster would reject or silently misinterpret."""
    where, hard, unqueued = f"Team {name}", args["hard"], args.get("unqueued")
    if GPU_QUOTA not in hard:
        written, add = ", ".join(sorted(hard)) or "{}", f"add {GPU_QUOTA}, 0 for a team without GPUs"
        refuse(where, SettingsProblem("hard", written, "has no ceiling in GPUs", add))
    for key, value in hard.items():
        if key.startswith("limits.") and "/" in key:
            counted = f"write requests.{key.removeprefix('limits.')}"
            refuse(where, SettingsProblem("hard", key, "Kubernetes accepts this key but never counts it", counted))
        if value.startswith("-") or not value:
            refuse(where, SettingsProblem(f"hard.{key}", repr(value), "must be a quantity of at least 0", "use one such as '0' or '8'"))
    if unqueued is not None:
        _check_unqueued(where, unqueued)
    for argument, groups in {"submitters": args.get("submitters", []), "viewers": args.get("viewers", [])}.items():
        for group in groups:
            if not group or group.startswith("system:"):
                problem = "must not be empty or a system group, because every user is in some of those"
                refuse(where, SettingsProblem(argument, repr(group), problem, "name a group of people"))


def _check_unqueued(where: str, unqueued: UnqueuedArgs) -> None:
    gpus = str(unqueued["gpus"])
    if unqueued["gpus"] < 0:
        refuse(where, SettingsProblem("unqueued.gpus", gpus, "must be 0 or more", "use 0 for a team without services, or a ceiling"))
    for resource, devices in unqueued.get("devices", {}).items():
        if resource not in BY_RESOURCE or devices < 0:
            allowed, remedy = f"must be at least 0, of one of {', '.join(BY_RESOURCE)}", "correct the resource or its number"
            refuse(where, SettingsProblem(f"unqueued.devices.{resource}", str(devices), allowed, remedy))
    if "devices" in unqueued and (devices := sum(unqueued["devices"].values())) != unqueued["gpus"]:
        refuse(where, SettingsProblem("unqueued.gpus", gpus, "is not the sum of unqueued.devices", f"write {devices}"))
    if not unqueued["priority_classes"]:
        empty, name_some = f"is empty, so the {gpus} GPUs belong to no class", "name the unqueued classes, or leave `unqueued` out"
        refuse(where, SettingsProblem("unqueued.priority_classes", "", empty, name_some))


_READ = ("get", "list", "watch")


def view_rules() -> list[PolicyRuleArgs]:
    """Return the rules to see work, its place in the queue, its status and the remaining quota. No Secrets, and no changes."""
    return [
        _rule("", ["pods", "events", "persistentvolumeclaims", "resourcequotas", "limitranges", "services"], _READ),
        _rule("", ["pods/log"], ["get"]),
        _rule("apps", ["deployments", "replicasets", "statefulsets"], _READ),
        _rule("batch", ["jobs", "cronjobs"], _READ),
        _rule("jobset.x-k8s.io", ["jobsets"], _READ),
        _rule("kueue.x-k8s.io", ["workloads", "localqueues"], _READ),
        # Also in Kueue's own role for its users (kueue-batch-user-role): a job's place in its queue.
        _rule("visibility.kueue.x-k8s.io", ["localqueues/pendingworkloads"], ["get"]),
    ]


def submit_rules(*, own_claims: bool) -> list[PolicyRuleArgs]:
    """Return the rules to view, start and end work, to create its files, keys and, with `own_claims`, disks, and for port-forward.

    No `update` or `patch` of work: a Job's template cannot change anyway, and its `suspend` belongs to Kueue. No pods, because work goes
    through a queue. No `exec`, which an administrator can add. Secrets can be created and deleted, and only pods read them. Port-forward
    needs `create` since Kubernetes 1.35, and `get` before.
    """
    return [
        *view_rules(),
        _rule("batch", ["jobs", "cronjobs"], ["create", "delete"]),
        _rule("jobset.x-k8s.io", ["jobsets"], ["create", "delete"]),
        _rule("", ["configmaps"], [*_READ, "create", "update", "patch", "delete"]),
        _rule("", ["secrets", *(["persistentvolumeclaims"] if own_claims else [])], ["create", "delete"]),
        _rule("", ["pods/portforward"], ["create", "get"]),
    ]


def _rule(group: str, resources: list[str], verbs: list[str] | tuple[str, ...]) -> PolicyRuleArgs:
    return PolicyRuleArgs(api_groups=[group], resources=resources, verbs=list(verbs))


DNS_PORT, HTTPS_PORT = 53, 443

_NAME_SERVERS = ("kube-dns", "node-local-dns")
"""Values of the label k8s-app of DNS pods. CoreDNS and kube-dns have the first. With Dataplane V2 GKE redirects to the second."""


def isolation(endpoints: Sequence[EndpointArgs]) -> NetworkPolicySpecArgs:
    """Return a policy that denies all traffic of a namespace's pods except what they need. `endpoints` are the cloud's own addresses.

    It is one policy, so that it is never in effect by half. HTTPS is open to every address, because no bucket and no API server has a fixed
    address that a policy could name. Another team's pods stay closed, because their own policy admits no one. kubectl port-forward and
    exec, and the kubelet's probes, need no rule: they come from the pod's own node, which policies always admit
    (https://kubernetes.io/docs/concepts/services-networking/network-policies/).
    """
    all_pods = LabelSelectorArgs()
    own_pods = NetworkPolicyPeerArgs(pod_selector=all_pods)
    return NetworkPolicySpecArgs(
        pod_selector=all_pods,
        policy_types=["Ingress", "Egress"],
        # Pods of one training run communicate on any port.
        ingress=[NetworkPolicyIngressRuleArgs(from_=[own_pods])],
        egress=[
            NetworkPolicyEgressRuleArgs(to=[own_pods]),
            NetworkPolicyEgressRuleArgs(to=[_name_servers()], ports=_ports(["UDP", "TCP"], [DNS_PORT])),
            *(
                NetworkPolicyEgressRuleArgs(to=[_address(each["cidr"])], ports=_ports(each["protocols"], each["ports"]))
                for each in endpoints
            ),
            NetworkPolicyEgressRuleArgs(to=[_address("0.0.0.0/0")], ports=_ports(["TCP"], [HTTPS_PORT])),
        ],
    )


def _name_servers() -> NetworkPolicyPeerArgs:
    return NetworkPolicyPeerArgs(
        namespace_selector=LabelSelectorArgs(match_labels={"kubernetes.io/metadata.name": "kube-system"}),
        pod_selector=LabelSelectorArgs(
            match_expressions=[LabelSelectorRequirementArgs(key="k8s-app", operator="In", values=list(_NAME_SERVERS))]
        ),
    )


def _address(cidr: str) -> NetworkPolicyPeerArgs:
    return NetworkPolicyPeerArgs(ip_block=IPBlockArgs(cidr=cidr))


def _ports(protocols: Sequence[str], ports: Sequence[int]) -> list[NetworkPolicyPortArgs]:
    return [NetworkPolicyPortArgs(protocol=protocol, port=port) for protocol in protocols for port in ports]


POD_SECURITY_VERSION = "v1.35"
"""The Kubernetes version whose Pod Security rules apply, so that an upgrade of the cluster rejects nothing that ran before.

It is the oldest version of the shipped stacks. Source: https://kubernetes.io/docs/concepts/security/pod-security-admission/
"""


def restricted() -> dict[str, str]:
    """Return labels of a namespace that only admits pods of Pod Security `restricted`, with warnings and entries in the audit log."""
    return {
        f"pod-security.kubernetes.io/{mode}{suffix}": value
        for mode in ("enforce", "audit", "warn")
        for suffix, value in (("", "restricted"), ("-version", POD_SECURITY_VERSION))
    }


_DEFAULT_REQUEST = {"cpu": "250m", "memory": "512Mi"}
_DEFAULT_LIMIT = {"cpu": "1", "memory": "2Gi"}


class Team(pulumi.ComponentResource):
    """A namespace in which a team cannot exceed its quotas, run privileged pods, or connect to other teams.

    - **Quota** on `requests.nvidia.com/gpu` (Kubernetes accepts `limits.nvidia.com/gpu` and never counts it), pods, Jobs and storage, and a
      second one on the GPUs of work without a queue, by PriorityClass.
    - **LimitRange** of cpu and memory only: a default for GPUs would give one to every container, including sidecars. A container without a
      limit gets the largest that is allowed. With a smaller one, all that request more and set no limit would be rejected.
    - **Pod Security** `restricted`, enforced, with warnings and entries in the audit log.
    - **Roles** `submit` and `view`, bound to the given groups, which may also read the team's own ClusterQueue.
    - **NetworkPolicy**: no traffic in or out except what `isolation` lists. A service with other callers needs an additional policy.
    - **Service** `flexspot-gang`, headless: it gives names to pods that train together. Members of the team cannot create Services, because
      a Service can take traffic of others.
    - **ConfigMap** `flexspot-platform` with the platform data that the team's work needs, if it is given.
    - **Service account** `workloads`, whose pods have no Kubernetes token. GKE's metadata server identifies a pod by its address, and EKS's
      agent by a token that EKS mounts by itself, so neither needs one. The account `default` is Kubernetes' own: it creates one in each
      namespace, and a program that creates it fails. A pod that names no account has its token, which has no permissions.

    Raises ValueError for a quota without a ceiling in GPUs or with one that is not counted, for negative ones, and for the cluster's own
    groups.
    """

    namespace: pulumi.Output[str]
    """The namespace's name, known once it exists."""

    service_account: pulumi.Output[str]
    """The name of the service account whose pods act as the team in the cloud, known once it exists."""

    def __init__(self, name: str, args: TeamArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        check_team(name, args)
        super().__init__("flexspot:index:Team", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        metadata = ObjectMetaArgs(
            name=args["namespace"], labels={**args["labels"], **restricted()}, annotations=args.get("annotations") or None
        )
        namespace = Namespace(f"{name}-namespace", metadata=metadata, opts=child)
        self.namespace = namespace.metadata.apply(lambda metadata: str(metadata.name))

        # By its plain name, so that a first preview, and its policies, show the namespace of each object.
        inside = pulumi.ResourceOptions(parent=self, depends_on=[namespace])

        def named(own: str) -> ObjectMetaArgs:
            return ObjectMetaArgs(name=own, namespace=args["namespace"], labels=args["labels"])

        ResourceQuota(f"{name}-quota", metadata=named("team"), spec=ResourceQuotaSpecArgs(hard=args["hard"]), opts=inside)
        unqueued = args.get("unqueued")
        if unqueued is not None:
            spec = _unqueued_quota(unqueued)
            ResourceQuota(f"{name}-unqueued", metadata=named("unqueued"), spec=spec, opts=inside)
        LimitRange(f"{name}-containers", metadata=named("containers"), spec=_limit_range(args), opts=inside)
        NetworkPolicy(f"{name}-isolation", metadata=named("isolation"), spec=isolation(args.get("endpoints", [])), opts=inside)
        if "platform" in args:
            ConfigMap(f"{name}-platform", metadata=named(CONFIG_MAP), data={KEY: args["platform"]}, opts=inside)
        Service(
            f"{name}-gang",
            # There is nothing to wait for: its pods may start at any later time.
            metadata=ObjectMetaArgs(
                name=GANG_SERVICE, namespace=args["namespace"], labels=args["labels"], annotations={"pulumi.com/skipAwait": "true"}
            ),
            # Pods wait for each other to become ready, and need the names before.
            spec=ServiceSpecArgs(cluster_ip="None", publish_not_ready_addresses=True, selector=GANG_SELECTOR),
            opts=inside,
        )
        for role, rules, groups in (
            (SUBMIT, submit_rules(own_claims=args.get("own_claims", False)), args.get("submitters", [])),
            (VIEW, view_rules(), args.get("viewers", [])),
        ):
            made = Role(f"{name}-{role}", metadata=named(role), rules=rules, opts=inside)
            if groups:
                RoleBinding(
                    f"{name}-{role}-binding",
                    metadata=named(role),
                    role_ref=RoleRefArgs(api_group=_RBAC, kind="Role", name=role),
                    subjects=_groups(groups),
                    opts=pulumi.ResourceOptions(parent=self, depends_on=[made]),
                )
        self._allow_reading_queues(name, args)
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
        publish(self)

    def _allow_reading_queues(self, name: str, args: TeamArgs) -> None:
        """Let the team's groups read its own ClusterQueues, which a Role cannot do because they belong to no namespace."""
        queues = args.get("cluster_queues", [])
        groups = {*args.get("submitters", []), *args.get("viewers", [])}
        if not queues or not groups:
            return
        role = f"flexspot-queue-{args['namespace']}"
        metadata = ObjectMetaArgs(name=role, labels=args["labels"])
        rule = PolicyRuleArgs(api_groups=["kueue.x-k8s.io"], resources=["clusterqueues"], resource_names=queues, verbs=["get"])
        made = ClusterRole(f"{name}-queue", metadata=metadata, rules=[rule], opts=pulumi.ResourceOptions(parent=self))
        ClusterRoleBinding(
            f"{name}-queue-binding",
            metadata=metadata,
            role_ref=RoleRefArgs(api_group=_RBAC, kind="ClusterRole", name=role),
            subjects=_groups(groups),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[made]),
        )


_RBAC = "rbac.authorization.k8s.io"


def _groups(names: Iterable[str]) -> list[SubjectArgs]:
    return [SubjectArgs(api_group=_RBAC, kind="Group", name=group) for group in sorted(set(names))]


def _unqueued_quota(args: UnqueuedArgs) -> ResourceQuotaSpecArgs:
    most = args.get("devices") or {NVIDIA.resource: args["gpus"]}
    hard = {BY_RESOURCE[resource].quota_key: count_quantity(devices) for resource, devices in most.items()}
    priority_classes = args["priority_classes"]
    classes = ScopedResourceSelectorRequirementArgs(scope_name="PriorityClass", operator="In", values=sorted(set(priority_classes)))
    return ResourceQuotaSpecArgs(hard=hard, scope_selector=ScopeSelectorArgs(match_expressions=[classes]))


def _limit_range(args: TeamArgs) -> LimitRangeSpecArgs:
    limits = args.get("container_limits")
    most = None if limits is None else {"cpu": limits["cpu"], "memory": limits["memory"]}
    # Without an explicit default, the API server would set one from the maximum, and a request of the same size.
    item = LimitRangeItemArgs(type="Container", max=most, default=most or _DEFAULT_LIMIT, default_request=_DEFAULT_REQUEST)
    return LimitRangeSpecArgs(limits=[item])
