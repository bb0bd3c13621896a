"""Workloads that people submit: requests, and the Kubernetes objects derived from them and the plan. No Pulumi."""
