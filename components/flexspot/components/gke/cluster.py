"""A GKE cluster that is made here, and how its API server is reached."""

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
    """The three parts of a cluster that together say from where its API server is reached."""

    private_cluster: ClusterPrivateClusterConfigArgs
    authorized_networks: ClusterMasterAuthorizedNetworksConfigArgs | None
    control_plane: ClusterControlPlaneEndpointsConfigArgs


def endpoints(args: GkeClusterArgs) -> Endpoints:
    """The endpoints of `args`. Nodes are private with every access.

    The range of the control plane is always set: without it, another access would replace the cluster.
    """
    by_name = args["access"] == Access.DNS_IAM
    return Endpoints(
        private_cluster=ClusterPrivateClusterConfigArgs(
            enable_private_nodes=True,
            # True where there is no address at all, too: GKE answers so, and false would show as a change in every later preview.
            enable_private_endpoint=args["access"] != Access.PUBLIC_CIDRS,
            master_ipv4_cidr_block=args["control_plane_cidr"],
            # Otherwise the address is reached from the cluster's own region alone
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
    """Without ranges those of the cluster's own nodes and pods and no other: that is what an empty block means to GKE."""
    blocks = [
        ClusterMasterAuthorizedNetworksConfigCidrBlockArgs(cidr_block=each) for each in sorted({*args["cidrs"], *args["runner_cidrs"]})
    ]
    if args["access"] != Access.PUBLIC_CIDRS:
        return ClusterMasterAuthorizedNetworksConfigArgs(cidr_blocks=blocks)
    return ClusterMasterAuthorizedNetworksConfigArgs(
        cidr_blocks=blocks,
        # Otherwise any machine of any customer of Google Cloud with a public address gets as far as the authentication.
        gcp_public_cidrs_access_enabled=False,
    )


LOGGED = ["SYSTEM_COMPONENTS", "WORKLOADS"]

MEASURED = [
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
"""What GKE measures, in the order of the API's own numbers: the provider takes the list as ordered."""

MEASURED_ANYWAY = ["SYSTEM_COMPONENTS"]
"""What does not come by way of Managed Service for Prometheus: cloud.google.com/kubernetes-engine/docs/how-to/configure-metrics."""


class GkeCluster(pulumi.ComponentResource):
    """A regional cluster that is private and limited by default.

    Standard: private nodes, Dataplane V2 (which enforces network policies), Workload Identity, shielded nodes, image streaming, metrics and
    logs, a pool for the controllers, and node auto-provisioning only up to ceilings. Autopilot has most of these built in and rejects the
    settings; there only Kueue, ResourceQuota and the project's own quota cap spend.

    With access `private`, `up` needs a runner whose address is in the range of the cluster's nodes or pods, or in `runner_cidrs` (as
    documented, not verified against a project), because objects inside the cluster are created through the API server.

    Raises ValueError, before anything is registered, for what GKE would refuse and for what is not limited.
    """

    cluster_name: pulumi.Output[str]
    """The cluster's name; what uses it waits for the cluster."""

    endpoint: pulumi.Output[str]
    """The host at which the API server is reached, without https://: an address, or with dns_iam the DNS name."""

    dns_endpoint: pulumi.Output[str]
    """The DNS name of the control plane. Traffic from outside is let in with dns_iam alone."""

    ca_certificate: pulumi.Output[str]
    """Certificate of the cluster's own authority, base64. The DNS name has a certificate of a public authority instead."""

    workload_pool: pulumi.Output[str]
    """The Workload Identity pool, PROJECT.svc.id.goog; what uses it waits for the cluster, because the first one of a project makes it."""

    kubeconfig: pulumi.Output[str]
    """A kubeconfig without secrets, as JSON. Whoever uses it needs gke-gcloud-auth-plugin, and with `private` a place in the network."""

    credentials_command: pulumi.Output[str]
    """The gcloud command that writes the cluster into a person's own kubeconfig."""

    def __init__(self, name: str, args: GkeClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        args = filled(GkeClusterArgs, args)
        check_cluster(name, args)
        super().__init__("flexspot:index:GkeCluster", name, {**args}, opts)
        cluster = container.Cluster(
            f"{name}-cluster",
            _cluster(args),
            # What GKE answers about the pool that was removed is about another one.
            pulumi.ResourceOptions(
                parent=self,
                protect=args["deletion_protection"],
                ignore_changes=["node_config", "initial_node_count"],
                hooks=limit_hook(name),
            ),
        )
        # Not an output: whatever has GPUs depends on it. A cluster whose only pools have GPUs does not get GKE's own taint on them, and
        # has nowhere to run what tolerates none. None on Autopilot.
        self.system_pool = None if args["system_pool"] is None else system_node_pool(name, args, args["system_pool"], cluster.name, self)

        self.cluster_name = cluster.name if args["min_version"] is None else self._offered(name, args, args["min_version"], cluster)
        self.dns_endpoint = part_of(cluster.control_plane_endpoints_config, dns_name_of)
        # The block holds a client's key, too, so all of it is a secret; the certificate is none.
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
        """The cluster's name, once GKE has a release for its version; what a preview does not know is a cluster that is still to be made.

        The version itself is sent as it is written: the newest release of it would be another one each week, and an upgrade with it.
        """

        def checked(known: list[Any]) -> str:
            running, offered = (None if pulumi.contains_unknowns(each) else each for each in known[1:])
            if told := refusal(version, args["release_channel"], running=running, offered=offered):
                # Not ValueError, which the SDK would wrap in the name and the address of every Output on its way.
                raise pulumi.RunError(f"GkeCluster {name}: {told}")
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
            # It would be a key that lasts for years and cannot be revoked.
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
    """Sets what was asked for; of the rest GKE's own choice stays, and no later preview shows it as a change."""
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
    """Sets what Autopilot has by itself, and refuses.

    `enable_autopilot` stays unset: the provider refuses even False beside these (pulumi/pulumi-gcp issue 2881).
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
        # Without the managed collectors there is nothing that would collect the other packages.
        enable_components=MEASURED if measured else MEASURED_ANYWAY,
        managed_prometheus=container.ClusterMonitoringConfigManagedPrometheusArgs(enabled=measured),
    )
    cluster.addons_config = container.ClusterAddonsConfigArgs(
        gcs_fuse_csi_driver_config=container.ClusterAddonsConfigGcsFuseCsiDriverConfigArgs(enabled=True),
        gce_persistent_disk_csi_driver_config=container.ClusterAddonsConfigGcePersistentDiskCsiDriverConfigArgs(enabled=True),
    )
    cluster.node_pool_defaults = container.ClusterNodePoolDefaultsArgs(
        node_config_defaults=container.ClusterNodePoolDefaultsNodeConfigDefaultsArgs(
            gcfs_config=container.ClusterNodePoolDefaultsNodeConfigDefaultsGcfsConfigArgs(enabled=True),
            # The kubelet's port without authentication, which tells every pod what runs beside it.
            insecure_kubelet_readonly_port_enabled="FALSE",
        )
    )
    if args["auto_provisioning"] is not None:
        # The defaults above do not hold for the pools that GKE makes by itself.
        cluster.node_pool_auto_config = container.ClusterNodePoolAutoConfigArgs(
            node_kubelet_config=container.ClusterNodePoolAutoConfigNodeKubeletConfigArgs(insecure_kubelet_readonly_port_enabled="FALSE")
        )


_FIRST_DAY = date(2025, 1, 1)
"""The windows count from here, or from the first day after it that has one: a day that moved would be a change in every later preview."""


def _maintenance(maintenance: Maintenance) -> container.ClusterMaintenancePolicyArgs:
    week = list(Weekday)
    days = sorted(maintenance.days, key=week.index)
    begun = _FIRST_DAY + timedelta(days=min(((week.index(day) - _FIRST_DAY.weekday()) % len(week) for day in days), default=0))
    start = datetime.combine(begun, time.fromisoformat(maintenance.start_utc), tzinfo=UTC)
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
"""What follows a version of so many numbers in its releases: 1.35 is no beginning of 1.350, nor 1.35.2 of 1.35.20."""


@dataclass(frozen=True)
class OfferedVersions:
    """What the release channels of a location offer of one version: by channel its newest release, and the default of all versions."""

    newest: Mapping[str, str]
    default: Mapping[str, str]


def offered_versions(location: str, project: str, version: str, parent: pulumi.Resource) -> pulumi.Output[OfferedVersions | None]:
    """What is on offer of `version`; None where nobody was asked, as in an offline preview.

    The provider answers the newest version of each channel that begins so (google-beta,
    data_source_google_container_engine_versions.go: strings.HasPrefix over the channel's valid versions; read 2026-11-26).
    """
    prefix = version + _ENDINGS.get(len(version_order(version)), "")
    options = pulumi.InvokeOutputOptions(parent=parent)
    return container.get_engine_versions_output(location=location, project=project, version_prefix=prefix, opts=options).apply(_offered)


def _offered(answer: GetEngineVersionsResult) -> OfferedVersions | None:
    newest: Mapping[str, str] | None = answer.release_channel_latest_version
    return None if newest is None else OfferedVersions(newest, answer.release_channel_default_version)


def refusal(version: str, channel: str, *, running: str | None, offered: OfferedVersions | None) -> str | None:
    """Why GKE would not take `version` for a cluster in `channel`, and what to say instead.

    None where the channel has a release of it, where nothing is known, and where the cluster, at `running`, needs none.
    """
    name = channel.upper()
    if offered is None or name in offered.newest or (running is not None and not is_below(running, version)):
        return None
    default = offered.default.get(name)
    remedy = f"its default is {default}: say {minor_version(default)!r}, or leave it out" if default else "leave it out"
    return f"min_version is {version!r}, and the channel {channel} offers no release of it; {remedy} (cluster.min_version)"


REMEDY = (
    "GKE is said to keep a limit that is taken out while node auto-provisioning is on, so that this one would stay, or the run stop there: "
    "name what has no pool any more, or boots from Hyperdisk alone, in `cluster.former_accelerators`"
)


def _tell(args: pulumi.ResourceHookArgs) -> None:
    if gone := limits_that_go(args.old_inputs, args.new_inputs):
        pulumi.log.warn(f"gpu-limit-removed: {', '.join(gone)}: {REMEDY}")


def limit_hook(name: str) -> pulumi.ResourceHookBinding | None:
    """The hook of a cluster's updates, in previews too. None where nobody calls hooks: an engine from before them, and mocks."""
    # Mocks say that they have them, and there is nobody behind them who would call.
    if isinstance(get_monitor(), MockMonitor) or not monitor_supports_feature(resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_HOOKS):
        return None
    hook = pulumi.ResourceHook(f"{name}-limits", _tell, pulumi.ResourceHookOptions(on_dry_run=True))
    return pulumi.ResourceHookBinding(before_update=[hook])
