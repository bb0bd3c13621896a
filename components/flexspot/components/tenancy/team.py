"""A team's namespace, with what holds in it: quotas, defaults, who may do what, what may connect to what."""

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
from flexspot.capacity.values.quantities import count_quantity
from flexspot.capacity.workloads.requests import GANG_SELECTOR, GANG_SERVICE, SERVICE_ACCOUNT
from flexspot.components.shared_args import publish


class EndpointArgs(TypedDict):
    """A cloud address that the team's pods must reach, with ports and protocols."""

    cidr: str
    """The address as a CIDR range, such as 169.254.169.254/32."""

    protocols: list[str]
    """TCP, UDP or both."""

    ports: list[int]
    """The ports."""


class ContainerLimits(TypedDict):
    """Maximum per container, as Kubernetes quantities. There is no such limit on GPUs: none is safe in a LimitRange."""

    cpu: str
    """vCPUs, such as 16."""

    memory: str
    """Memory, such as 64Gi."""


class UnqueuedArgs(TypedDict):
    """Limits for work that waits in no queue."""

    gpus: int
    """Maximum GPUs at once, at least zero."""

    devices: NotRequired[dict[str, int]]
    """The same by resource name, if it is not only nvidia.com/gpu: aws.amazon.com/neuron, too. Default: `gpus` are nvidia.com/gpu."""

    priority_classes: list[str]
    """The PriorityClasses whose pods count; at least one."""


class TeamArgs(TypedDict):
    """Arguments of Team."""

    namespace: str
    """The namespace's name."""

    labels: dict[str, str]
    """Labels of all of the team's objects, including its owner and team labels."""

    hard: dict[str, str]
    """Maximum for the namespace at once, by ResourceQuota key, as Kubernetes quantities; must include `requests.nvidia.com/gpu`, with
    borrowed GPUs."""

    unqueued: NotRequired[UnqueuedArgs | None]
    """GPU limits for work without a queue. Default: only the limit in `hard`."""

    container_limits: NotRequired[ContainerLimits | None]
    """Maximum per container, which is also the default limit of a container that sets none. Default: no LimitRange maximum; 1 CPU and 2
    GiB for a container that sets none."""

    submitters: NotRequired[list[str]]
    """Groups whose members may start and end work and use port-forward, by the name that the cluster knows: on GKE a Google group's
    address, on EKS a group of an access entry. Default: none."""

    viewers: NotRequired[list[str]]
    """Groups whose members may view the namespace. Default: none."""

    own_claims: NotRequired[bool]
    """Whether submitters may create and delete PersistentVolumeClaims. Default: false. Only set it to true if the cluster's policies
    protect the claims that the team did not create, such as those of its checkpoints: permission to delete one claim is permission to
    delete all."""

    cluster_queues: NotRequired[list[str]]
    """The team's ClusterQueues, which belong to no namespace; submitters and viewers may read them, and so their quota. Default: none."""

    platform: NotRequired[str]
    """Platform data that the team's work needs, as written by flexspot.capacity.plan.teams; with it, `flexspot run` needs no stack
    file. It is stored in a ConfigMap of the namespace. Default: there is none."""

    endpoints: NotRequired[list[EndpointArgs]]
    """The cloud's own addresses, in addition to DNS servers in pods and HTTPS. Default: none."""

    service_account_annotations: NotRequired[dict[str, pulumi.Input[str]]]
    """Annotations of the service account `workloads`; on GKE iam.gke.io/gcp-service-account. Default: none, which is right for EKS."""


def check_team(name: str, args: TeamArgs) -> None:
    """Raises ValueError for arguments that the cluster would refuse, or take and not mean."""
    hard, unqueued = args["hard"], args.get("unqueued")
    if GPU_QUOTA not in hard:
        allowed = f"give {GPU_QUOTA}, 0 for a team without GPUs"
        raise ValueError(f"Team {name}: hard names {', '.join(sorted(hard)) or 'nothing'} and no ceiling in GPUs; {allowed}")
    for key, value in hard.items():
        if key.startswith("limits.") and "/" in key:
            counted = f"requests.{key.removeprefix('limits.')}"
            raise ValueError(f"Team {name}: hard names {key}, which Kubernetes takes and never counts; write {counted}")
        if value.startswith("-") or not value:
            raise ValueError(f"Team {name}: hard[{key}] is {value!r}; use a quantity of at least 0, such as '0' or '8'")
    if unqueued is not None:
        _check_unqueued(name, unqueued)
    for argument, groups in {"submitters": args.get("submitters", []), "viewers": args.get("viewers", [])}.items():
        for group in groups:
            if not group or group.startswith("system:"):
                remedy = "name a group of people: every user is in some of the cluster's own"
                raise ValueError(f"Team {name}: {argument} names {group!r}; {remedy}")


def _check_unqueued(name: str, unqueued: UnqueuedArgs) -> None:
    if unqueued["gpus"] < 0:
        raise ValueError(f"Team {name}: unqueued.gpus is {unqueued['gpus']}; use 0 for a team without services, or a ceiling")
    for resource, devices in unqueued.get("devices", {}).items():
        if resource not in BY_RESOURCE or devices < 0:
            allowed = f"give 0 or more of {', '.join(BY_RESOURCE)}"
            raise ValueError(f"Team {name}: unqueued.devices has {resource}={devices}; {allowed}")
    if "devices" in unqueued and sum(unqueued["devices"].values()) != unqueued["gpus"]:
        remedy = f"write gpus={sum(unqueued['devices'].values())}"
        raise ValueError(f"Team {name}: unqueued.gpus is {unqueued['gpus']}, and unqueued.devices come to something else; {remedy}")
    if not unqueued["priority_classes"]:
        remedy = "name the classes without queue, or leave `unqueued` out"
        raise ValueError(f"Team {name}: unqueued.priority_classes is empty, so its {unqueued['gpus']} GPUs are of nobody; {remedy}")


_READ = ("get", "list", "watch")


def view_rules() -> list[PolicyRuleArgs]:
    """To see what runs, what waits, where in its queue and why, and how much quota is left. No Secret, and nothing can be changed."""
    return [
        _rule("", ["pods", "events", "persistentvolumeclaims", "resourcequotas", "limitranges", "services"], _READ),
        _rule("", ["pods/log"], ["get"]),
        _rule("apps", ["deployments", "replicasets", "statefulsets"], _READ),
        _rule("batch", ["jobs", "cronjobs"], _READ),
        _rule("jobset.x-k8s.io", ["jobsets"], _READ),
        _rule("kueue.x-k8s.io", ["workloads", "localqueues"], _READ),
        # What Kueue's own role for its users has, too (kueue-batch-user-role): where a job stands in its queue.
        _rule("visibility.kueue.x-k8s.io", ["localqueues/pendingworkloads"], ["get"]),
    ]


def submit_rules(*, own_claims: bool) -> list[PolicyRuleArgs]:
    """To view, to start and end work, to give it files and keys, disks where it has `own_claims`, and to reach a notebook by port-forward.

    No `update` or `patch` of work: a Job's template is fixed anyway, and what is left to change, `suspend`, is Kueue's. No pods: work goes
    through a queue. No `exec`: who wants it gives it. Secrets are made and deleted, and read by pods alone. A forward asks for `create`
    since Kubernetes 1.35 and for `get` before.
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
"""The label k8s-app of the pods that answer names: CoreDNS and kube-dns have the first; with Dataplane V2 GKE redirects to the second."""


def isolation(endpoints: Sequence[EndpointArgs]) -> NetworkPolicySpecArgs:
    """Denies everything to and from all pods of a namespace, but for what they need; `endpoints` are the cloud's own addresses.

    One policy, so that there is no moment at which only half of it holds. HTTPS is open to every address, because neither a bucket nor the
    API server has one of its own that a policy could name; another team's pods stay closed, as their own policy lets in nobody.
    kubectl port-forward and exec, and the kubelet's probes, need no hole: they come from the pod's own node, which policies let through
    (https://kubernetes.io/docs/concepts/services-networking/network-policies/).
    """
    everybody = LabelSelectorArgs()
    own_pods = NetworkPolicyPeerArgs(pod_selector=everybody)
    return NetworkPolicySpecArgs(
        pod_selector=everybody,
        policy_types=["Ingress", "Egress"],
        # Pods of one training run talk to each other on any port.
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
"""The Kubernetes version whose Pod Security rules hold, so that an upgrade of the cluster refuses nothing that ran before.

The oldest version that the shipped stacks run. Source: https://kubernetes.io/docs/concepts/security/pod-security-admission/
"""


def restricted() -> dict[str, str]:
    """Labels of a namespace that takes only pods of Pod Security `restricted`, enforced, and told in warnings and the audit log."""
    return {
        f"pod-security.kubernetes.io/{mode}{suffix}": value
        for mode in ("enforce", "audit", "warn")
        for suffix, value in (("", "restricted"), ("-version", POD_SECURITY_VERSION))
    }


_DEFAULT_REQUEST = {"cpu": "250m", "memory": "512Mi"}
_DEFAULT_LIMIT = {"cpu": "1", "memory": "2Gi"}


class Team(pulumi.ComponentResource):
    """A namespace in which a team can hold no more than it may, run nothing with privileges, and connect to no other team.

    - **Quota** on `requests.nvidia.com/gpu` (Kubernetes takes `limits.nvidia.com/gpu` and never counts it), pods, Jobs and storage, and a
      second one on the GPUs of work that waits in no queue, by PriorityClass.
    - **LimitRange** of cpu and memory alone: a default of a GPU would give one to every container, sidecars included. A container without a
      limit gets the largest that is allowed: with a smaller one, all that request more and name no limit would be refused.
    - **Pod Security** `restricted`, enforced, and told in warnings and the audit log.
    - **Roles** `submit` and `view`, bound to the groups given, which may also read the team's own ClusterQueue.
    - **NetworkPolicy**: nothing in or out but what `isolation` lists. A service that others call needs a policy of its own beside it.
    - **Service** `flexspot-gang`, headless: pods that train together have names in it. The team's members may make none themselves, since a
      Service can take traffic that is not theirs.
    - **ConfigMap** `flexspot-platform` with what the team's work needs to know of the platform, where it is given.
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
            spec = _unqueued_quota(unqueued)
            ResourceQuota(f"{name}-unqueued", metadata=named("unqueued"), spec=spec, opts=inside)
        LimitRange(f"{name}-containers", metadata=named("containers"), spec=_limit_range(args), opts=inside)
        NetworkPolicy(f"{name}-isolation", metadata=named("isolation"), spec=isolation(args.get("endpoints", [])), opts=inside)
        if "platform" in args:
            ConfigMap(f"{name}-platform", metadata=named(CONFIG_MAP), data={KEY: args["platform"]}, opts=inside)
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
        self._let_queue_be_read(name, args)
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

    def _let_queue_be_read(self, name: str, args: TeamArgs) -> None:
        """The team's own ClusterQueues for its groups. A Role cannot give them: they are of no namespace."""
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
    # Without a default beside it, the API server would make one of the maximum, and a request of it too.
    item = LimitRangeItemArgs(type="Container", max=most, default=most or _DEFAULT_LIMIT, default_request=_DEFAULT_REQUEST)
    return LimitRangeSpecArgs(limits=[item])
