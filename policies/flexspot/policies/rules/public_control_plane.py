"""A cluster whose API server is reachable from the whole internet."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.cloud_resources import EksClusterView, GkeClusterView, lets_in_everybody
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.values.field import UNKNOWN, Field, Tri, all_of, any_of, negated


def judge(cluster: GkeClusterView | EksClusterView, _: Parameters) -> Outcome:
    """It has a public address, and no range keeps anybody from it. A name that lets in whom IAM knows (GKE's DNS endpoint) is none."""
    public, ranges, remedy = _of_eks(cluster.fields) if isinstance(cluster, EksClusterView) else _of_gke(cluster.fields)
    if public is UNKNOWN:
        return undecided(f"who can reach the API server ({cluster.where}{ranges}) is not known yet")
    if public:
        return fails(
            f"its API server has a public address, and {cluster.where}{ranges} lets everybody in", remedy, f"{cluster.where}{ranges}"
        )
    return PASSES


def _of_gke(cluster: Field) -> tuple[Tri, str, str]:
    """Where nothing is said, a cluster has a public address, and everybody is let in."""
    private = cluster.at("privateClusterConfig", "enablePrivateEndpoint").equals("true")
    without_address = cluster.at("controlPlaneEndpointsConfig", "ipEndpointsConfig", "enabled").equals("false")
    networks = cluster.at("masterAuthorizedNetworksConfig")
    everybody = True if networks.absent else networks.at("cidrBlocks").parts().any(lambda each: lets_in_everybody(each.at("cidrBlock")))
    return (
        all_of([negated(any_of([private, without_address])), everybody if networks.known else UNKNOWN]),
        "masterAuthorizedNetworksConfig",
        "set privateClusterConfig.enablePrivateEndpoint, use only the DNS endpoint, or list your own ranges in cidrBlocks",
    )


def _of_eks(cluster: Field) -> tuple[Tri, str, str]:
    """Where nothing is said, the address is public, and 0.0.0.0/0 let in. ACK has names of its own for two of the fields."""
    ack = not cluster.at("resourcesVPCConfig").absent
    network = cluster.at("resourcesVPCConfig" if ack else "vpcConfig")
    ranges = "publicAccessCIDRs" if ack else "publicAccessCidrs"
    listed = network.at(ranges).parts()
    everybody = listed.any(lets_in_everybody) if listed.named or not listed.complete else True
    return (
        all_of([negated(network.at("endpointPublicAccess").equals("false")), everybody]),
        f"{'resourcesVPCConfig' if ack else 'vpcConfig'}.{ranges}",
        f"set endpointPublicAccess to false and endpointPrivateAccess to true, or list your own ranges in {ranges}",
    )


RULE = Rule(
    code="FLX056",
    severity=Severity.HIGH,
    judge=judge,
    why="Anyone can then use a leaked kubeconfig or an API server vulnerability, and GPU clusters are what miners look for.",
    remediation="Restrict access to the API server to your own network, or to listed address ranges.",
    link="https://docs.aws.amazon.com/eks/latest/userguide/cluster-endpoint.html",
    sources=("https://docs.cloud.google.com/kubernetes-engine/docs/concepts/network-isolation",),
)
