"""PromQL: what an expression does, and which labels and series there are to ask for."""
