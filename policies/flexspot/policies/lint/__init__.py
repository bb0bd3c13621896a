"""`flexspot lint`: the rules applied to Kubernetes YAML and JSON files. Does not import Pulumi."""
