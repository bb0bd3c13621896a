"""What Prometheus is to record for reports and dashboards, as data. Pure: nothing here reads a network or a clock."""
