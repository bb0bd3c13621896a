"""Pulumi components: the plan's pools, queues, tenants and workloads as cloud and Kubernetes resources.

Thin by rule: whatever can be decided without Pulumi is decided in `capacity`.
"""
