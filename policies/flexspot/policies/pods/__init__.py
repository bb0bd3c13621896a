"""What rules ask about pods: where they can run, what interrupts them, which of them are meant."""
