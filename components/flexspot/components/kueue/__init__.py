"""Kueue: its controller, and its objects for flavors of capacity and queues over them."""
