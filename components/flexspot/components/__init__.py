"""Pulumi components: the plan's pools, queues, tenants and workloads as cloud and Kubernetes resources.

They are thin: all decisions that do not need Pulumi are made in `capacity`.
"""
