"""Settings of a stack file. Models are strict: an unknown or misspelt setting is an error."""
