"""`flexspot audit`: the rules, and what is paid for nothing, on a cluster that runs; it reads and writes nothing."""
