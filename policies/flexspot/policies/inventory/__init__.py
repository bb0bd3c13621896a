"""What there is, whichever spelling it was written in: pools, pods, queues, clusters, expressions; `reading` makes it from objects."""
