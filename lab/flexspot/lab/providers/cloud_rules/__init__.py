"""What the real gcp and aws providers refuse by their own validation: dated data with its loader, and the check by it."""
