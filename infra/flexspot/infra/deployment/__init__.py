"""Deployment of a stack: prerequisites, credentials, and repair after interruptions and manual changes."""
