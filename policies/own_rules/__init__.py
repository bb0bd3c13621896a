"""An organisation's own rules, said in CEL as in the cluster's policies: reading them, judging by them, and trying them on fixtures."""
