"""Dated data files about the clouds, with typed loaders: machines, capacity types, labels, prices, workload classes."""
