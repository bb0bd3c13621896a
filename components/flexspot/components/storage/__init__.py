"""Storage that outlives machines: buckets and file systems, a team's access to them, their mounts, and work queues."""
