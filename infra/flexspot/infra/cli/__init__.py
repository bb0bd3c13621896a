"""The `flexspot` command line. Commands parse, call and show; what they show is decided elsewhere."""
