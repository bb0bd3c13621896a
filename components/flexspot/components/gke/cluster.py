"""A GKE cluster that the stack creates, and access to its API server."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pulumi
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import get_monitor, monitor_supports_feature
from pulumi_gcp import container
from pulumi_gcp.container import (
    ClusterControlPlaneEndpointsConfigArgs,
    ClusterControlPlaneEndpointsConfigDnsEndpointConfigArgs,
    ClusterControlPlaneEndpointsConfigIpEndpointsConfigArgs,
    ClusterMasterAuthorizedNetworksConfigArgs,
    ClusterMasterAuthorizedNetworksConfigCidrBlockArgs,
    ClusterPrivateClusterConfigArgs,
    ClusterPrivateClusterConfigMasterGlobalAccessConfigArgs,
    GetEngineVersionsResult,
)

from flexspot.capacity.catalog.gke_limits import limits_that_go
from flexspot.capacity.catalog.versions import is_below, minor_version, version_order
from flexspot.capacity.settings.gke_security import GkeSecurity
from flexspot.capacity.settings.maintenance import Maintenance, MaintenanceExclusion, Weekday
from flexspot.capacity.settings.network import Access
from flexspot.components.gke.cluster_args import GkeClusterArgs, check_cluster, is_autopilot
from flexspot.components.gke.system_nodes import cluster_autoscaling, first_pool_config, system_node_pool
from flexspot.components.kubeconfig import context_name, dns_name_of, gke_credentials_command, gke_kubeconfig, part_of
from flexspot.components.shared_args import filled, publish


@dataclass(frozen=True)
class Endpoints:
    """The three parts of a cluster's configuration that determine from where its API server can be reached."""

    private_cluster: ClusterPrivateClusterConfigArgs
    authorized_networks: ClusterMasterAuthorizedNetworksConfigArgs | None
    control_plane: ClusterControlPlaneEndpointsConfigArgs


def endpoints(args: GkeClusterArgs) -> Endpoints:
    """Return the endpoints for `args`. Nodes are private with every kind of access.

    The range of the control plane is always set. Without it, a change of access would replace the cluster.
    """
    by_name = args["access"] == Access.DNS_IAM
    return Endpoints(
        private_cluster=ClusterPrivateClusterConfigArgs(
            enable_private_nodes=True,
            # Also true if there is no address at all: GKE returns that, and false would show as a change in every later preview.
            enable_private_endpoint=args["access"] != Access.PUBLIC_CIDRS,
            master_ipv4_cidr_block=args["control_plane_cidr"],
            # Otherwise the address can only be reached from the cluster's own region
            # (cloud.google.com/kubernetes-engine/docs/how-to/advanced-private-cluster-config; read 2026-11-25).
            master_global_access_config=ClusterPrivateClusterConfigMasterGlobalAccessConfigArgs(enabled=True)
            if args["runner_cidrs"]
            else None,
        ),
        authorized_networks=None if by_name else _authorized_networks(args),
        control_plane=ClusterControlPlaneEndpointsConfigArgs(
            dns_endpoint_config=ClusterControlPlaneEndpointsConfigDnsEndpointConfigArgs(allow_external_traffic=by_name),
            ip_endpoints_config=ClusterControlPlaneEndpointsConfigIpEndpointsConfigArgs(enabled=not by_name),
        ),
    )


def _authorized_networks(args: GkeClusterArgs) -> ClusterMasterAuthorizedNetworksConfigArgs:
    """Return the authorized networks. Without ranges GKE only admits the cluster's own nodes and pods, which an empty block means."""
    blocks = [
        ClusterMasterAuthorizedNetworksConfigCidrBlockArgs(cidr_block=each) for each in sorted({*args["cidrs"], *args["runner_cidrs"]})
    ]
    if args["access"] != Access.PUBLIC_CIDRS:
        return ClusterMasterAuthorizedNetworksConfigArgs(cidr_blocks=blocks)
    return ClusterMasterAuthorizedNetworksConfigArgs(
        cidr_blocks=blocks,
        # Otherwise any machine with a public address in Google Cloud, of any customer, reaches the authentication.
        gcp_public_cidrs_access_enabled=False,
    )


LOGGED = ["SYSTEM_COMPONENTS", "WORKLOADS"]

METRICS = [
    "SYSTEM_COMPONENTS",
    "STORAGE",
    "HPA",
    "POD",
    "DAEMONSET",
    "DEPLOYMENT",
    "STATEFULSET",
    "CADVISOR",
    "KUBELET",
    "DCGM",
    "JOBSET",
]
"""Metrics that GKE collects, in the order of the API's own numbers, because the provider treats the list as ordered."""

SYSTEM_METRICS = ["SYSTEM_COMPONENTS"]
"""Metrics that do not need Managed Service for Prometheus: cloud.google.com/kubernetes-engine/docs/how-to/configure-metrics."""


class GkeCluster(pulumi.ComponentResource):
    """A regional cluster that is private and limited by default.

    Standard: private nodes, Dataplane V2 (which enforces network policies), Workload Identity, shielded nodes, image streaming, metrics and
    logs, a pool for the controllers, and node auto-provisioning only up to ceilings. Autopilot has most of these built in and rejects the
    settings. There only Kueue, ResourceQuota and the project's own quota limit cost.

    With access `private`, `up` needs a runner whose address is in the range of the cluster's nodes or pods, or in `runner_cidrs`, because
    objects inside the cluster are created through the API server. This follows the documentation and has not been verified in a project.

    Raises ValueError, before anything is registered, for values that GKE would reject and for missing limits.
    """

    cluster_name: pulumi.Output[str]
    """The cluster's name. Resources that use it wait for the cluster."""

    endpoint: pulumi.Output[str]
    """The host of the API server, without https://: an address, or with dns_iam the DNS name."""

    dns_endpoint: pulumi.Output[str]
    """The DNS name of the control plane. It only admits traffic from outside with dns_iam."""

    ca_certificate: pulumi.Output[str]
    """Certificate of the cluster's own authority, in base64. The DNS name has a certificate of a public authority instead."""

    workload_pool: pulumi.Output[str]
    """The Workload Identity pool, PROJECT.svc.id.goog. Users of it wait for the cluster: the project's first cluster creates the pool."""

    kubeconfig: pulumi.Output[str]
    """A kubeconfig without secrets, as JSON. It needs gke-gcloud-auth-plugin, and with `private` access a client in the network."""

    credentials_command: pulumi.Output[str]
    """The gcloud command that adds the cluster to a user's own kubeconfig."""

    def __init__(self, name: str, args: GkeClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        args = filled(GkeClusterArgs, args)
        check_cluster(name, args)
        super().__init__("flexspot:index:GkeCluster", name, {**args}, opts)
        cluster = container.Cluster(
            f"{name}-cluster",
            _cluster(args),
            # After the default pool is removed, GKE reports these fields of a different pool.
            pulumi.ResourceOptions(
                parent=self,
                protect=args["deletion_protection"],
                ignore_changes=["node_config", "initial_node_count"],
                hooks=limit_hook(name),
            ),
        )
        # Resources with GPUs depend on it. If a cluster only has GPU pools, GKE does not taint them, and pods without tolerations have no
        # nodes. None on Autopilot.
        self.system_pool = None if args["system_pool"] is None else system_node_pool(name, args, args["system_pool"], cluster.name, self)

        self.cluster_name = cluster.name if args["min_version"] is None else self._offered(name, args, args["min_version"], cluster)
        self.dns_endpoint = part_of(cluster.control_plane_endpoints_config, dns_name_of)
        # The whole block is a secret because it contains a client's key. The certificate is not secret.
        self.ca_certificate = pulumi.Output.unsecret(part_of(cluster.master_auth, lambda auth: auth.cluster_ca_certificate))
        by_name = args["access"] == Access.DNS_IAM
        self.endpoint = self.dns_endpoint if by_name else cluster.endpoint
        context = context_name(args["cluster"], args["region"], args["project"])
        self.kubeconfig = pulumi.Output.all(self.endpoint, self.ca_certificate).apply(
            lambda known: gke_kubeconfig(context, known[0], None if by_name else known[1])
        )
        self.workload_pool = cluster.name.apply(lambda _: f"{args['project']}.svc.id.goog")
        self.credentials_command = cluster.name.apply(
            lambda _: gke_credentials_command(args["cluster"], args["region"], args["project"], args["access"])
        )
        publish(self)

    def _offered(self, name: str, args: GkeClusterArgs, version: str, cluster: container.Cluster) -> pulumi.Output[str]:
        """Return the cluster's name, once it is known that GKE has a release for its version.

        In a preview the cluster's own version is unknown if the cluster does not exist yet. The version is sent as written: the newest
        release would change every week, and upgrade the cluster each time.
        """

        def checked(known: list[Any]) -> str:
            running, offered = (None if pulumi.contains_unknowns(each) else each for each in known[1:])
            if reason := refusal(version, args["release_channel"], running=running, offered=offered):
                # Not ValueError, which the SDK would wrap in the name and the address of every Output on its way.
                raise pulumi.RunError(f"GkeCluster {name}: {reason}")
            return known[0]

        offered = offered_versions(args["region"], args["project"], version, self)
        return pulumi.Output.all(cluster.name, cluster.master_version, offered).apply(checked, run_with_unknowns=True)


def _cluster(args: GkeClusterArgs) -> container.ClusterArgs:
    reached = endpoints(args)
    cluster = container.ClusterArgs(
        name=args["cluster"],
        project=args["project"],
        location=args["region"],
        deletion_protection=args["deletion_protection"],
        resource_labels=args["resource_labels"],
        release_channel=container.ClusterReleaseChannelArgs(channel=args["release_channel"].upper()),
        min_master_version=args["min_version"],
        network=args["network"],
        subnetwork=args["subnetwork"],
        ip_allocation_policy=container.ClusterIpAllocationPolicyArgs(
            cluster_secondary_range_name=args["pods_range"], services_secondary_range_name=args["services_range"]
        ),
        private_cluster_config=reached.private_cluster,
        master_authorized_networks_config=reached.authorized_networks,
        control_plane_endpoints_config=reached.control_plane,
        master_auth=container.ClusterMasterAuthArgs(
            # The certificate's key would last for years and could not be revoked.
            client_certificate_config=container.ClusterMasterAuthClientCertificateConfigArgs(issue_client_certificate=False)
        ),
        maintenance_policy=_maintenance(Maintenance.model_validate(args["maintenance"])),
        cost_management_config=container.ClusterCostManagementConfigArgs(enabled=True),
        cluster_autoscaling=cluster_autoscaling(args),
    )
    _secure(cluster, GkeSecurity.model_validate(args["security"]))
    if args["groups_domain"] is not None:
        group = f"gke-security-groups@{args['groups_domain']}"
        cluster.authenticator_groups_config = container.ClusterAuthenticatorGroupsConfigArgs(security_group=group)
    if is_autopilot(args):
        cluster.enable_autopilot = True
    else:
        _make_standard(cluster, args)
    return cluster


def _secure(cluster: container.ClusterArgs, security: GkeSecurity) -> None:
    """Set the security options that are given. GKE chooses the others, and no later preview shows its choice as a change."""
    if security.secrets_kms_key is not None:
        cluster.database_encryption = container.ClusterDatabaseEncryptionArgs(state="ENCRYPTED", key_name=security.secrets_kms_key)
    posture, scanning = security.posture, security.vulnerability_scanning
    if posture is not None or scanning is not None:
        cluster.security_posture_config = container.ClusterSecurityPostureConfigArgs(
            mode=posture and posture.upper(), vulnerability_mode=scanning and f"VULNERABILITY_{scanning.upper()}"
        )
    if security.binary_authorization is not None:
        cluster.binary_authorization = container.ClusterBinaryAuthorizationArgs(evaluation_mode=security.binary_authorization.upper())


def _make_standard(cluster: container.ClusterArgs, args: GkeClusterArgs) -> None:
    """Set what Autopilot has built in and rejects.

    `enable_autopilot` stays unset: the provider rejects even False together with these (pulumi/pulumi-gcp issue 2881).
    """
    cluster.node_locations = sorted(args["zones"])
    cluster.remove_default_node_pool = True
    cluster.initial_node_count = 1
    cluster.node_config = first_pool_config(args)
    cluster.default_max_pods_per_node = args["max_pods_per_node"]
    cluster.networking_mode = "VPC_NATIVE"
    cluster.datapath_provider = "ADVANCED_DATAPATH"
    cluster.enable_shielded_nodes = True
    if args["multi_networking"]:
        cluster.enable_multi_networking = True
    cluster.workload_identity_config = container.ClusterWorkloadIdentityConfigArgs(workload_pool=f"{args['project']}.svc.id.goog")
    cluster.logging_config = container.ClusterLoggingConfigArgs(enable_components=LOGGED)
    measured = args["managed_prometheus"]
    cluster.monitoring_config = container.ClusterMonitoringConfigArgs(
        # Without the managed collectors nothing would collect the other packages.
        enable_components=METRICS if measured else SYSTEM_METRICS,
        managed_prometheus=container.ClusterMonitoringConfigManagedPrometheusArgs(enabled=measured),
    )
    cluster.addons_config = container.ClusterAddonsConfigArgs(
        gcs_fuse_csi_driver_config=container.ClusterAddonsConfigGcsFuseCsiDriverConfigArgs(enabled=True),
        gce_persistent_disk_csi_driver_config=container.ClusterAddonsConfigGcePersistentDiskCsiDriverConfigArgs(enabled=True),
    )
    cluster.node_pool_defaults = container.ClusterNodePoolDefaultsArgs(
        node_config_defaults=container.ClusterNodePoolDefaultsNodeConfigDefaultsArgs(
            gcfs_config=container.ClusterNodePoolDefaultsNodeConfigDefaultsGcfsConfigArgs(enabled=True),
            # The kubelet's port without authentication, which shows every pod what else runs on the node.
            insecure_kubelet_readonly_port_enabled="FALSE",
        )
    )
    if args["auto_provisioning"] is not None:
        # The defaults above do not apply to the pools that GKE creates by itself.
        cluster.node_pool_auto_config = container.ClusterNodePoolAutoConfigArgs(
            node_kubelet_config=container.ClusterNodePoolAutoConfigNodeKubeletConfigArgs(insecure_kubelet_readonly_port_enabled="FALSE")
        )


_FIRST_DAY = date(2025, 1, 1)
"""Windows start on this day, or the first day after it that has one. A day that moved would show as a change in every later preview."""


def _maintenance(maintenance: Maintenance) -> container.ClusterMaintenancePolicyArgs:
    week = list(Weekday)
    days = sorted(maintenance.days, key=week.index)
    first_day = _FIRST_DAY + timedelta(days=min(((week.index(day) - _FIRST_DAY.weekday()) % len(week) for day in days), default=0))
    start = datetime.combine(first_day, time.fromisoformat(maintenance.start_utc), tzinfo=UTC)
    return container.ClusterMaintenancePolicyArgs(
        recurring_window=container.ClusterMaintenancePolicyRecurringWindowArgs(
            start_time=_zulu(start),
            end_time=_zulu(start + timedelta(hours=maintenance.hours)),
            recurrence=f"FREQ=WEEKLY;BYDAY={','.join(day[:2].upper() for day in days)}" if days else "FREQ=DAILY",
        ),
        maintenance_exclusions=[_exclusion(each) for each in maintenance.exclusions] or None,
    )


def _exclusion(exclusion: MaintenanceExclusion) -> container.ClusterMaintenancePolicyMaintenanceExclusionArgs:
    return container.ClusterMaintenancePolicyMaintenanceExclusionArgs(
        exclusion_name=exclusion.name,
        start_time=f"{exclusion.starts}T00:00:00Z",
        end_time=f"{exclusion.ends}T00:00:00Z" if exclusion.ends else None,
        exclusion_options=container.ClusterMaintenancePolicyMaintenanceExclusionExclusionOptionsArgs(
            scope=exclusion.scope.upper(), end_time_behavior=None if exclusion.ends else "UNTIL_END_OF_SUPPORT"
        ),
    )


def _zulu(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


_ENDINGS = {2: ".", 3: "-"}
"""Character that follows a version of this many numbers in its releases, so that 1.35 does not match 1.350, nor 1.35.2 match 1.35.20."""


@dataclass(frozen=True)
class OfferedVersions:
    """Releases of one version that the release channels of a location offer."""

    newest: Mapping[str, str]
    """The newest release of the version, by channel."""
    default: Mapping[str, str]
    """The default of all versions, by channel."""


def offered_versions(location: str, project: str, version: str, parent: pulumi.Resource) -> pulumi.Output[OfferedVersions | None]:
    """Return the offered releases of `version`, or None if GKE was not asked, as in an offline preview.

    The provider returns the newest version of each channel that has this prefix (google-beta,
    data_source_google_container_engine_versions.go: strings.HasPrefix over the channel's valid versions; read 2026-11-26).
    """
    prefix = version + _ENDINGS.get(len(version_order(version)), "")
    options = pulumi.InvokeOutputOptions(parent=parent)
    return container.get_engine_versions_output(location=location, project=project, version_prefix=prefix, opts=options).apply(_offered)


def _offered(answer: GetEngineVersionsResult) -> OfferedVersions | None:
    newest: Mapping[str, str] | None = answer.release_channel_latest_version
    return None if newest is None else OfferedVersions(newest, answer.release_channel_default_version)


def refusal(version: str, channel: str, *, running: str | None, offered: OfferedVersions | None) -> str | None:
    """Return why GKE would reject `version` for a cluster in `channel`, and what to do.

    None if the channel has a release of it, if nothing is known, or if the cluster already runs it or a newer version.
    """
    name = channel.upper()
    if offered is None or name in offered.newest or (running is not None and not is_below(running, version)):
        return None
    default = offered.default.get(name)
    remedy = f"use {minor_version(default)!r} (its default is {default}), or leave it out" if default else "leave it out"
    return f"min_version (is {version!r}): the channel {channel} offers no release of it; {remedy} (cluster.min_version)"


REMEDY = (
    "GKE is reported to keep a limit that is removed while node auto-provisioning is on, so the limit would stay or the update would fail; "
    "list accelerators without a pool, or whose pools only boot from Hyperdisk, in `cluster.former_accelerators`"
)


def _warn(args: pulumi.ResourceHookArgs) -> None:
    if gone := limits_that_go(args.old_inputs, args.new_inputs):
        pulumi.log.warn(f"gpu-limit-removed: {', '.join(gone)}: {REMEDY}")


def limit_hook(name: str) -> pulumi.ResourceHookBinding | None:
    """Return the hook of a cluster's updates, also in previews. None if nothing calls hooks: an engine without them, and mocks."""
    # Mocks claim to support hooks but never call them.
    if isinstance(get_monitor(), MockMonitor) or not monitor_supports_feature(resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_HOOKS):
        return None
    hook = pulumi.ResourceHook(f"{name}-limits", _warn, pulumi.ResourceHookOptions(on_dry_run=True))
    return pulumi.ResourceHookBinding(before_update=[hook])
