"""A GKE cluster that somebody else made."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import NotRequired, TypedDict

import pulumi
from pulumi_gcp import container

from capacity.settings.network import Access
from components.kubeconfig import ca_certificate_of, context_name, dns_name_of, gke_credentials_command, gke_kubeconfig


class ExistingGkeClusterArgs(TypedDict):
    """Arguments of ExistingGkeCluster."""

    cluster: str
    """The cluster's name."""

    project: str
    """The project that it is in."""

    region: str
    """Its region."""

    zone: NotRequired[str | None]
    """The zone of the region in which its control plane is, such as us-central1-a. Default: it is regional."""

    access: NotRequired[str]
    """How its API server is reached: private, dns_iam or public_cidrs, as it was set up. Default: private."""


class ExistingGkeCluster(pulumi.ComponentResource):
    """A cluster that is read and never changed. Its network, limits and system nodes are its owner's.

    Raises ValueError for an access that GKE does not have, and for a zone of another region.
    """

    cluster_name: pulumi.Output[str]
    """The cluster's name."""

    kubeconfig: pulumi.Output[str]
    """A kubeconfig without secrets, as JSON. Whoever uses it needs gke-gcloud-auth-plugin."""

    credentials_command: pulumi.Output[str]
    """The gcloud command that writes the cluster into a person's own kubeconfig."""

    def __init__(self, name: str, args: ExistingGkeClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        access = args.get("access", Access.PRIVATE.value)
        if access not in set(Access):
            raise ValueError(f"ExistingGkeCluster {name}: access is {access!r}; allowed: {', '.join(Access)}")
        region, zone = args["region"], args.get("zone")
        if zone is not None and not zone.startswith(f"{region}-"):
            raise ValueError(
                f"ExistingGkeCluster {name}: zone is {zone!r}; allowed is a zone of {region}; name the cluster's own; a regional one has "
                "none"
            )
        location = zone or region
        super().__init__("flexspot:index:ExistingGkeCluster", name, {**args}, opts)
        # What depends on the system nodes of a cluster of ours depends on this one as a whole.
        self.system_pool: container.NodePool | None = None
        path = f"projects/{args['project']}/locations/{location}/clusters/{args['cluster']}"
        cluster = container.Cluster.get(f"{name}-cluster", path, pulumi.ResourceOptions(parent=self))
        by_name = access == Access.DNS_IAM
        host = cluster.control_plane_endpoints_config.apply(dns_name_of) if by_name else cluster.endpoint
        certificate = pulumi.Output.unsecret(cluster.master_auth.apply(ca_certificate_of))
        context = context_name(args["cluster"], location, args["project"])
        self.cluster_name = cluster.name
        self.kubeconfig = pulumi.Output.all(host, certificate).apply(
            lambda known: gke_kubeconfig(context, known[0], None if by_name else known[1])
        )
        self.credentials_command = pulumi.Output.from_input(gke_credentials_command(args["cluster"], location, args["project"], access))
        self.register_outputs(
            {
                "cluster_name": self.cluster_name,
                "kubeconfig": self.kubeconfig,
                "credentials_command": self.credentials_command,
            }
        )
