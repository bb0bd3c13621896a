"""Resource providers for the Pulumi engine where the real plugins are not available."""
