"""A team's objects on the cluster: namespace, quota and defaults, and the priorities that all teams share."""
