"""Karpenter's objects: pools of nodes that it makes and removes."""
