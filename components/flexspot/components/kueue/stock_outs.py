"""A pod that makes queues use the next pool when the cloud has no machines for the first."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import hashlib
from pathlib import Path
from typing import NotRequired

import pulumi
from pulumi_kubernetes.apps.v1 import Deployment
from pulumi_kubernetes.core.v1 import (
    ConfigMap,
    ConfigMapVolumeSourceArgs,
    ContainerArgs,
    EnvVarArgs,
    ResourceRequirementsArgs,
    ServiceAccount,
    VolumeArgs,
    VolumeMountArgs,
)
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs
from pulumi_kubernetes.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRuleArgs, RoleRefArgs, SubjectArgs

from flexspot.capacity.catalog.system_pods import STOCK_OUT_WATCH
from flexspot.capacity.settings.teams import StockOuts
from flexspot.capacity.values.quantities import mib_quantity, milli_quantity
from flexspot.components.in_cluster import single_pod, unprivileged
from flexspot.components.kueue.stock_out_watch import CREDENTIALS_VARIABLE, HOLD_VARIABLE
from flexspot.components.shared_args import PlacementArgs, checked_options, publish


class StockOutWatchArgs(PlacementArgs):
    """Arguments of StockOutWatch. Defaults are those of StockOuts in the settings."""

    namespace: str
    """The namespace of its objects, which must exist."""

    labels: dict[str, str]
    """Labels of the objects."""

    image: NotRequired[str]
    """An image with Python 3.9 or later as `python3`. Default: Docker's official image, from Amazon's public registry."""

    hold_minutes: NotRequired[int]
    """Minutes that a flavor stays closed after the cloud's last refusal, 5 to 1440. Default: 30."""


NAME = STOCK_OUT_WATCH.name
CLUSTER_ROLE = "flexspot-stock-out-watch"

SELECTED = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": "flexspot"}
"""Labels that select its pod."""

_PROGRAM = Path(__file__).with_name("stock_out_watch.py")
_FOLDER = "/opt/flexspot"
_CHECKSUM = "flexspot.dev/program-sha256"
_CREDENTIALS = "/var/run/secrets/kubernetes.io/serviceaccount"
_RBAC = "rbac.authorization.k8s.io"


class StockOutWatch(pulumi.ComponentResource):
    """Closes a Kueue flavor when the autoscaler reports that the cloud has no machines for its pool, and reopens it after a while.

    From then on Kueue admits work with the team's next flavor: newly submitted jobs, and jobs whose wait for their pods is over. A flavor
    in which work runs on borrowed GPUs stays open, because their owner can only reclaim them in an open flavor. Nothing is closed for a pod
    that asks for less than the whole pool, such as a zone or a disk of its own. The watch reads events, pods, claims and Kueue's
    objects, and changes flavors. One replica is enough: while it is down, Kueue works as without it. With a Kueue before 0.19.1, waiting
    work does not notice that a flavor was reopened.

    Raises ValueError for a time out of bounds.
    """

    workload: pulumi.Output[str]
    """Namespace and name of the Deployment, known once its pod runs."""

    def __init__(self, name: str, args: StockOutWatchArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        wanted = checked_options(f"StockOutWatch {name}", StockOuts, args)
        super().__init__("flexspot:index:StockOutWatch", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        metadata = ObjectMetaArgs(name=NAME, namespace=args["namespace"], labels={**args["labels"], **SELECTED})
        account = ServiceAccount(f"{name}-account", metadata=metadata, automount_service_account_token=False, opts=child)
        role = ClusterRole(
            f"{name}-role",
            metadata=ObjectMetaArgs(name=CLUSTER_ROLE, labels=args["labels"]),
            rules=[
                PolicyRuleArgs(api_groups=[""], resources=["events"], verbs=["list"]),
                PolicyRuleArgs(api_groups=[""], resources=["pods", "persistentvolumeclaims"], verbs=["get"]),
                PolicyRuleArgs(api_groups=["kueue.x-k8s.io"], resources=["clusterqueues", "workloads"], verbs=["list"]),
                PolicyRuleArgs(api_groups=["kueue.x-k8s.io"], resources=["resourceflavors"], verbs=["list", "patch"]),
            ],
            opts=child,
        )
        binding = ClusterRoleBinding(
            f"{name}-binding",
            metadata=ObjectMetaArgs(name=CLUSTER_ROLE, labels=args["labels"]),
            role_ref=RoleRefArgs(api_group=_RBAC, kind="ClusterRole", name=CLUSTER_ROLE),
            subjects=[SubjectArgs(kind="ServiceAccount", name=NAME, namespace=args["namespace"])],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[role, account]),
        )
        program = _PROGRAM.read_text(encoding="utf-8")
        file = ConfigMap(f"{name}-program", metadata=metadata, data={_PROGRAM.name: program}, opts=child)
        made = Deployment(
            f"{name}-deployment",
            metadata=metadata,
            spec=single_pod(
                _container(wanted),
                account=NAME,
                selected=SELECTED,
                labels=args["labels"],
                node_selector=args.get("node_selector", {}),
                tolerations=args.get("tolerations", []),
                # A running interpreter does not read a changed file again, so a change replaces the pod.
                annotations={_CHECKSUM: hashlib.sha256(program.encode()).hexdigest()},
                volumes=[VolumeArgs(name="program", config_map=ConfigMapVolumeSourceArgs(name=NAME))],
            ),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[binding, file]),
        )
        where = f"{args['namespace']}/{NAME}"
        self.workload = made.id.apply(lambda _: where)
        publish(self)


def _container(wanted: StockOuts) -> ContainerArgs:
    memory = mib_quantity(STOCK_OUT_WATCH.memory_mib)
    return ContainerArgs(
        name=NAME,
        image=wanted.image,
        command=["python3", f"{_FOLDER}/{_PROGRAM.name}"],
        env=[
            EnvVarArgs(name=CREDENTIALS_VARIABLE, value=_CREDENTIALS),
            EnvVarArgs(name=HOLD_VARIABLE, value=str(60 * wanted.hold_minutes)),
        ],
        resources=ResourceRequirementsArgs(
            requests={"cpu": milli_quantity(STOCK_OUT_WATCH.cpu_milli), "memory": memory}, limits={"memory": memory}
        ),
        security_context=unprivileged(),
        volume_mounts=[VolumeMountArgs(name="program", mount_path=_FOLDER, read_only=True)],
    )
