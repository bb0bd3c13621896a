"""Karpenter: its controller, its interruption queue, and the pools of nodes that it creates and removes."""
