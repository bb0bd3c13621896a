"""What must agree before a resource exists: each check is one pure function over the ground that the settings stand on."""
