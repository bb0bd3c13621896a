"""The arithmetic of money before it is spent: Spot, units of work, waiting, reserving, and what to advise."""
