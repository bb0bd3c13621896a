"""An existing GKE cluster that others manage."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_gcp import container
from pulumi_gcp.container.outputs import ClusterAddonsConfig, ClusterClusterAutoscaling, ClusterWorkloadIdentityConfig

from flexspot.capacity.catalog.versions import is_below, minor_version
from flexspot.capacity.settings.cluster import GkeMode
from flexspot.capacity.settings.network import Access
from flexspot.components.cloud_names import check_choice
from flexspot.components.in_cluster import answered
from flexspot.components.kubeconfig import context_name, dns_name_of, gke_credentials_command, gke_kubeconfig, part_of
from flexspot.components.shared_args import publish


class VersionNeedArgs(TypedDict):
    """A minimum version that a feature requires."""

    version: str
    """The first GKE version that it works with, such as 1.32.2-gke.1652000."""

    user: str
    """The feature that requires it, as error messages name it."""


class ExistingGkeClusterArgs(TypedDict):
    """Arguments of ExistingGkeCluster."""

    cluster: str
    """The cluster's name."""

    project: str
    """Its project."""

    region: str
    """Its region."""

    zone: NotRequired[str | None]
    """The zone of its control plane, such as us-central1-a. Default: the cluster is regional."""

    access: NotRequired[str]
    """Access that its API server is configured for: private, dns_iam or public_cidrs. Default: private."""

    mode: NotRequired[str | None]
    """The required mode: standard or autopilot. Default: either."""

    workload_identity: NotRequired[bool]
    """If true, pods must be able to act as service accounts through the project's own workload identity pool. Default: False."""

    gcs_fuse: NotRequired[bool]
    """If true, the cluster must have the Cloud Storage FUSE driver. Default: False."""

    at_least: NotRequired[list[VersionNeedArgs]]
    """GKE versions that features require. Default: none."""

    room: NotRequired[dict[str, int]]
    """Maximum resources of all node pools on it: `cpu`, `memory` in GiB, and GPUs by GKE's name. Default: nothing.

    If node auto-provisioning is on, its limits must not be lower."""


@dataclass(frozen=True)
class FoundGkeCluster:
    """Facts about a cluster that a platform depends on, as GKE returns them."""

    version: str | None
    """GKE version. None if it was not read, as in an offline preview."""
    autopilot: bool
    workload_pool: str
    """The Workload Identity pool. Empty without Workload Identity."""
    gcs_fuse: bool
    limits: dict[str, int]
    """Limits of node auto-provisioning. Empty if it is off."""


def _pool(identity: ClusterWorkloadIdentityConfig | None) -> str:
    return (identity.workload_pool or "") if identity else ""


def _has_gcs_fuse(addons: ClusterAddonsConfig | None) -> bool:
    driver = addons.gcs_fuse_csi_driver_config if addons else None
    return driver is not None and driver.enabled


def _limits(autoscaling: ClusterClusterAutoscaling | None) -> dict[str, int]:
    if autoscaling is None or not autoscaling.enabled:
        return {}
    return {each.resource_type: each.maximum for each in autoscaling.resource_limits or [] if each.maximum is not None}


def problems(args: ExistingGkeClusterArgs, found: FoundGkeCluster) -> Iterator[str]:
    """Yield why a platform does not work on this cluster, and what fixes it. A cluster that was not read is not checked.

    The flags are those of `gcloud container clusters update` and `upgrade` (docs.cloud.google.com/sdk/gcloud/reference/container/clusters,
    and gcloud's own flags.py; read 2026-11-25).
    """
    if found.version is None:
        return
    cluster, project = args["cluster"], args["project"]
    place = f"{cluster} --location {args.get('zone') or args['region']} --project {project}"
    update = f"gcloud container clusters update {place}"
    mode = args.get("mode")
    if mode is not None and (mode == GkeMode.AUTOPILOT) is not found.autopilot:
        has = GkeMode.AUTOPILOT if found.autopilot else GkeMode.STANDARD
        # The provider would replace the cluster for it (google-beta 8.0.0, container_cluster: enable_autopilot is ForceNew).
        yield f"mode (is {mode!r}): {cluster} is {has}, which GKE cannot change; use mode {has} (cluster.mode), or another cluster"
    # Autopilot always has the next two, whatever the API returns (Google's pages on Workload Identity and on setting up the driver).
    pool = f"{project}.svc.id.goog"
    if not found.autopilot and args.get("workload_identity") and found.workload_pool != pool:
        is_now = f"has the pool {found.workload_pool}, not {pool}" if found.workload_pool else "is off"
        yield (
            f"Workload Identity of {cluster} {is_now}, so pods cannot act as their team's service account; ask its owner to run "
            f"`{update} --workload-pool={pool}`, which changes no existing node"
        )
    if not found.autopilot and args.get("gcs_fuse") and not found.gcs_fuse:
        yield (
            f"the Cloud Storage FUSE driver of {cluster} is off, so pods that mount a bucket would not start; ask its owner to run "
            f"`{update} --update-addons=GcsFuseCsiDriver=ENABLED`"
        )
    yield from _too_old(args, found.version, f"gcloud container clusters upgrade {place} --master")
    if not found.autopilot:
        yield from _too_small(args, found.limits, f"{update} --enable-autoprovisioning")


def _too_old(args: ExistingGkeClusterArgs, version: str, upgrade: str) -> Iterator[str]:
    users: dict[str, list[str]] = {}
    for need in args.get("at_least", []):
        users.setdefault(need["version"], []).append(need["user"])
    for least, named in users.items():
        if is_below(version, least):
            yield (
                f"{args['cluster']} has GKE {version}, but {least} or newer is required by {', '.join(named)}; ask its owner to upgrade "
                f"it, one minor version at a time, with `{upgrade} --cluster-version={minor_version(least)}`, or leave out these features"
            )


def _too_small(args: ExistingGkeClusterArgs, limits: dict[str, int], update: str) -> Iterator[str]:
    """Yield limits of node auto-provisioning that are too low. They also limit declared pools. Missing limits do not."""
    room = args.get("room", {})
    # gcloud only accepts the first two together (its api_adapter.py: "Must specify both --max-cpu and --max-memory").
    both = " ".join(f"--max-{name} {max(limits.get(name, 0), room.get(name, 0))}" for name in ("cpu", "memory"))
    for name, wanted in room.items():
        limit = limits.get(name)
        if limit is not None and limit < wanted:
            own = "" if name in {"cpu", "memory"} else f" --max-accelerator type={name},count={wanted}"
            yield (
                f"node auto-provisioning of {args['cluster']} has a limit of {limit} for {name}, above which no pool grows, but the pools "
                f"alone may use {wanted}; ask its owner to run `{update} {both}{own}`, or lower the pools' ceilings"
            )


class ExistingGkeCluster(pulumi.ComponentResource):
    """An existing cluster, which is only read and never changed. Its owner manages its network, limits and system nodes.

    After reading it, also in a preview, the run ends with pulumi.RunError and one line per problem if it does not satisfy `mode`,
    `workload_identity`, `gcs_fuse`, `at_least` and `room`. Nothing that waits for its name or its API server is then created. Raises
    ValueError for an access or a mode that GKE does not have, and for a zone of another region.
    """

    cluster_name: pulumi.Output[str]
    """The cluster's name. Resources that use it wait until the checks have passed."""

    kubeconfig: pulumi.Output[str]
    """A kubeconfig without secrets, as JSON. It needs gke-gcloud-auth-plugin."""

    credentials_command: pulumi.Output[str]
    """The gcloud command that adds the cluster to a user's own kubeconfig."""

    def __init__(self, name: str, args: ExistingGkeClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where = f"ExistingGkeCluster {name}:"
        access, mode = args.get("access", Access.PRIVATE.value), args.get("mode")
        check_choice(f"{where} access", access, list(Access))
        if mode is not None:
            check_choice(f"{where} mode", mode, list(GkeMode))
        called, region, zone = args["cluster"], args["region"], args.get("zone")
        if zone is not None and not zone.startswith(f"{region}-"):
            raise ValueError(f"{where} zone (is {zone!r}): is not a zone of {region}; use the control plane's, or leave it out if regional")
        location = zone or region
        super().__init__("flexspot:index:ExistingGkeCluster", name, {**args}, opts)
        # Resources that depend on the system nodes of a cluster of this project depend on an existing cluster as a whole.
        self.system_pool: container.NodePool | None = None
        path = f"projects/{args['project']}/locations/{location}/clusters/{called}"
        cluster = container.Cluster.get(f"{name}-cluster", path, pulumi.ResourceOptions(parent=self))

        def checked_name(parts: dict[str, Any]) -> str:
            if messages := [f"{where} {each}" for each in problems(args, FoundGkeCluster(**parts))]:
                # Not ValueError, which the SDK would wrap in the name and the address of every Output on its way.
                raise pulumi.RunError("\n".join(messages))
            return called

        self.cluster_name = pulumi.Output.all(
            version=answered(cluster.master_version, lambda version: version),
            autopilot=answered(cluster.enable_autopilot, bool),
            workload_pool=answered(cluster.workload_identity_config, _pool),
            gcs_fuse=answered(cluster.addons_config, _has_gcs_fuse),
            limits=answered(cluster.cluster_autoscaling, _limits),
        ).apply(checked_name)
        by_name = access == Access.DNS_IAM
        host = part_of(cluster.control_plane_endpoints_config, dns_name_of) if by_name else cluster.endpoint
        certificate = pulumi.Output.unsecret(part_of(cluster.master_auth, lambda auth: auth.cluster_ca_certificate))
        context = context_name(called, location, args["project"])
        self.kubeconfig = pulumi.Output.all(host, certificate, self.cluster_name).apply(
            lambda known: gke_kubeconfig(context, known[0], None if by_name else known[1])
        )
        self.credentials_command = pulumi.Output.from_input(gke_credentials_command(called, location, args["project"], access))
        publish(self)
