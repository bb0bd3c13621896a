"""Bills of the clouds, as they are exported to files: one charge a row, whoever wrote it."""
