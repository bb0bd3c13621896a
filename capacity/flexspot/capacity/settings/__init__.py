"""What a person writes in a stack file. Strict: an unknown or misspelt setting is an error."""
