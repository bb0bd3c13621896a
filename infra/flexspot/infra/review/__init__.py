"""The effect of a change of a project's repository on its stacks: offline previews of two revisions, compared."""
