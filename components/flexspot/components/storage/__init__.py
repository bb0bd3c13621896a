"""Where work outlives its machines: buckets, a team's access to them, their mounts, and queues of work."""
