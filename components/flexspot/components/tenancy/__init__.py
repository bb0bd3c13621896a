"""What a team has on the cluster: namespace, quota, defaults; and the priorities that all teams share."""
