"""The Pulumi program, one platform per cloud, and the `flexspot` command line in `flexspot.infra.cli`."""
