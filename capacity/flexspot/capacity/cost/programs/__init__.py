"""What a Pulumi program declares of what clouds bill, whoever wrote it, and what a month of it costs."""
