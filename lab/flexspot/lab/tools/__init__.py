"""The programs that the lab runs: which they are, where they are cached, how they are built."""
