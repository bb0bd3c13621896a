"""The files that `flexspot init` writes: a project with its stacks."""
