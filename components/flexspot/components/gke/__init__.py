"""GKE: the network, the identity of the nodes, the cluster and its pools of nodes."""
