"""The pure model of capacity: machines, capacity types, prices. No Pulumi, no Kubernetes client, no network."""
