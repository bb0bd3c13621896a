"""Rules over pools, queues and workloads, pure, and the surfaces that enforce them: engine, manifests, cluster."""
