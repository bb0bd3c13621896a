"""Values that may be unknown, fields of an object, and findings. Knows no kind of object."""
