"""What is known of the clouds, as dated data files beside typed loaders: machines, capacity types, labels, prices, classes of work."""
