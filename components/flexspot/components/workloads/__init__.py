"""Workloads on the platform's capacity: the objects that flexspot.capacity.workloads derives, valid for their class by construction."""
