"""What a platform costs, as its own program declares it."""
