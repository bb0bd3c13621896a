"""For inside the user's container: checkpointing and interruption handling, on the standard library alone.

A package of its own so that an image installs it without the platform's dependencies; it imports none of the other folders.
"""
