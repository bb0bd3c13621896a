"""A real Prometheus with a real kube-state-metrics over a lab, for as long as somebody asks: what a report of a cluster is read from."""
