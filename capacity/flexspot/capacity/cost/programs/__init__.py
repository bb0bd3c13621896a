"""Billable resources in any Pulumi program, and their monthly cost."""
