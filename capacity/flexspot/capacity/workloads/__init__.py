"""Work that people submit: requests, and the Kubernetes objects that follow from them and the plan. No Pulumi."""
