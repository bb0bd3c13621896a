"""Commands on a project's stacks: from their files to what is deployed."""
