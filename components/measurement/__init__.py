"""What measures GPUs for reports and dashboards: an exporter, how it is scraped, and what is recorded of it."""
