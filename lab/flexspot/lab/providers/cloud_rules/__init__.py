"""Validation rules of the real gcp and aws providers: dated data with its loader, and the check by it."""
