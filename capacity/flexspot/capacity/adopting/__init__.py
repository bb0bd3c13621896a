"""Proposals of stack files for existing platforms, read from a Terraform state or a cluster."""
