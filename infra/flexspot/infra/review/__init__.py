"""What a change of a project's repository does to its stacks: two revisions, previewed offline and held against each other."""
