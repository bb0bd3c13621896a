"""What a rule is, and how a person sets it."""
