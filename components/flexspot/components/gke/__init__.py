"""GKE: the network, the identity of the nodes, the cluster and its node pools."""
