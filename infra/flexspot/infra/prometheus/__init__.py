"""Reading Prometheus over HTTP: range queries in slices, kept on disk until the report is done."""
