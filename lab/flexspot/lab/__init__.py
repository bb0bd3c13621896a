"""The local control plane: real Kubernetes, Kueue and Karpenter on fake nodes, without a cloud account, containers or root."""
