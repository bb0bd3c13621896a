"""Declaration of a stack's resources, from its settings and plan: as a Pulumi program or as a component."""
