"""What rules ask about pools: what bounds them, and where they are."""
