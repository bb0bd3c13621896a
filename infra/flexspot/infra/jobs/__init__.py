"""A team's jobs on a cluster: a member of the team submits, follows and stops them with a personal kubeconfig."""
