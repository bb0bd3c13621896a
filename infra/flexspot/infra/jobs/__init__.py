"""A team's jobs on a cluster, as a member of the team submits, follows and stops them with a kubeconfig of their own."""
