"""What must agree before a resource exists: each check is one pure function over the resolved settings."""
