"""The rules over Kubernetes YAML and JSON as files hold it: `flexspot lint`. Imports no Pulumi."""
