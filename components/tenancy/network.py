"""What a team's pods may connect to: each other, name servers, the identity server of their node, and HTTPS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi_kubernetes.meta.v1 import LabelSelectorArgs, LabelSelectorRequirementArgs
from pulumi_kubernetes.networking.v1 import (
    IPBlockArgs,
    NetworkPolicyEgressRuleArgs,
    NetworkPolicyIngressRuleArgs,
    NetworkPolicyPeerArgs,
    NetworkPolicyPortArgs,
    NetworkPolicySpecArgs,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.tenancy.team_args import EndpointArgs

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
