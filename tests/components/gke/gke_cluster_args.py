"""Arguments of GkeCluster for its tests, and a stand-in for GKE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
from component_outputs import outputs_of

from flexspot.components.gke.cluster import GkeCluster
from flexspot.lab.providers.offline import UNANSWERED

if TYPE_CHECKING:
    from flexspot.components.gke.cluster_args import GkeClusterArgs

CLUSTER = "gcp:container/cluster:Cluster"
NODE_POOL = "gcp:container/nodePool:NodePool"

SYSTEM_POOL = {"machine": "e2-standard-4"}
CEILINGS = {"max_vcpu": 512, "max_memory_gib": 2048, "accelerators": {"nvidia-tesla-t4": 4, "nvidia-l4": 16}}
AUTOPILOT = {"mode": "autopilot", "system_pool": None}


class Cloud(pulumi.runtime.Mocks):
    """Answers with the values that GKE adds to a cluster, with a secret where the real provider has one."""

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        inputs: dict[str, Any] = dict(args.inputs)
        if args.typ == CLUSTER:
            inputs["endpoint"] = "172.16.0.2"
            inputs["masterAuth"] = {"clusterCaCertificate": "Y2E=", "clientKey": pulumi.Output.secret("key")}
            inputs["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]["endpoint"] = "gke-1.us-central1.gke.goog"
        return f"{args.name}-id", inputs

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        assert args.token in UNANSWERED, f"a cluster asks nothing else; {args.token} was called"
        return {}, []


def args(**changes: Any) -> GkeClusterArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "cluster": "prod",
        "project": "acme-ai-prod",
        "region": "us-central1",
        "zones": ["us-central1-b", "us-central1-a"],
        "network": "projects/acme-ai-prod/global/networks/flexspot",
        "subnetwork": "projects/acme-ai-prod/regions/us-central1/subnetworks/flexspot-nodes",
        "pods_range": "pods",
        "services_range": "services",
        "node_service_account": "nodes@acme-ai-prod.iam.gserviceaccount.com",
        "system_pool": {"machine": "e2-standard-4"},
    } | changes


def cluster_outputs(**changes: Any) -> dict[str, Any]:
    """Return the component's outputs, as GKE would produce them, and the names of those that are secret."""
    return outputs_of(Cloud(), lambda: GkeCluster("gke", args(**changes)))


class Nothing(Cloud):
    """Answers with inputs only, as in the preview of a new cluster, or of a change to one that has an `identity`."""

    identity: str | None = None

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        return self.identity, dict(args.inputs)
