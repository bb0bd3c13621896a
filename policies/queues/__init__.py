"""What rules ask about queues: who shares quota with whom, and how much a namespace can hold."""
