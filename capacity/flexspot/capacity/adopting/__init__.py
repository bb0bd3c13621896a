"""From what somebody already runs to a stack file that says the same: a Terraform state, or a cluster, read and proposed."""
