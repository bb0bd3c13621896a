"""The programs that the lab runs: their list, their cache and their build."""
