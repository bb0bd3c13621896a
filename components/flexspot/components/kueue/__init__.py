"""Kueue's objects: flavors of capacity and queues over them."""
