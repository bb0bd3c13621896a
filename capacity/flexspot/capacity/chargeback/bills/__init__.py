"""Bills of the clouds, as they are exported to files: one entry for each amount, whoever wrote it."""
