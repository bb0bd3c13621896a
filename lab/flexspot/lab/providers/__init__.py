"""Resource providers that the lab gives the Pulumi engine where the real plugins cannot be had."""
