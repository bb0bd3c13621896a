"""EKS: the network, the cluster with its add-ons and system nodes, and existing clusters."""
