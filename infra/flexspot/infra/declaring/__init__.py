"""What a stack declares: from its settings through the plan to every resource, for a program and for a component."""
