"""Chargeback: from what Prometheus saw in a month to who pays what of the nodes' cost. Pure: nothing here reads a network or a clock."""
