"""How the API server is reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi_gcp.container import (
    ClusterControlPlaneEndpointsConfigArgs,
    ClusterControlPlaneEndpointsConfigDnsEndpointConfigArgs,
    ClusterControlPlaneEndpointsConfigIpEndpointsConfigArgs,
    ClusterMasterAuthorizedNetworksConfigArgs,
    ClusterMasterAuthorizedNetworksConfigCidrBlockArgs,
    ClusterPrivateClusterConfigArgs,
)

from capacity.settings.network import Access

if TYPE_CHECKING:
    from components.gke.cluster_args import ClusterShape


@dataclass(frozen=True)
class Endpoints:
    """The three parts of a cluster that together say from where its API server is reached."""

    private_cluster: ClusterPrivateClusterConfigArgs
    authorized_networks: ClusterMasterAuthorizedNetworksConfigArgs | None
    control_plane: ClusterControlPlaneEndpointsConfigArgs


def endpoints(shape: ClusterShape) -> Endpoints:
    """The endpoints of `shape`. Nodes are private with every access.

    The range of the control plane is always set: without it, another access would replace the cluster.
    """
    by_name = shape.access == Access.DNS_IAM
    return Endpoints(
        private_cluster=ClusterPrivateClusterConfigArgs(
            enable_private_nodes=True,
            # True where there is no address at all, too: GKE answers so, and false would show as a change in every later preview.
            enable_private_endpoint=shape.access != Access.PUBLIC_CIDRS,
            master_ipv4_cidr_block=shape.control_plane_cidr,
        ),
        authorized_networks=None if by_name else _authorized_networks(shape),
        control_plane=ClusterControlPlaneEndpointsConfigArgs(
            dns_endpoint_config=ClusterControlPlaneEndpointsConfigDnsEndpointConfigArgs(allow_external_traffic=by_name),
            ip_endpoints_config=ClusterControlPlaneEndpointsConfigIpEndpointsConfigArgs(enabled=not by_name),
        ),
    )


def _authorized_networks(shape: ClusterShape) -> ClusterMasterAuthorizedNetworksConfigArgs:
    """Without `cidrs`, the ranges of the cluster's own nodes and pods and no other: that is what an empty block means to GKE."""
    if shape.access != Access.PUBLIC_CIDRS:
        return ClusterMasterAuthorizedNetworksConfigArgs(cidr_blocks=[])
    return ClusterMasterAuthorizedNetworksConfigArgs(
        cidr_blocks=[ClusterMasterAuthorizedNetworksConfigCidrBlockArgs(cidr_block=each) for each in sorted(shape.cidrs)],
        # Otherwise any machine of any customer of Google Cloud with a public address gets as far as the authentication.
        gcp_public_cidrs_access_enabled=False,
    )
