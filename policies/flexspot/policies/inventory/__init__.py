"""The inventory: pools, pods, queues, clusters and expressions, whatever their spelling. `reading` creates it from objects."""
