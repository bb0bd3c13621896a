"""What `flexspot init` writes: a project with stacks of its own."""
