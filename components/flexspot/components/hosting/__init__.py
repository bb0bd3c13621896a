"""The components for programs in languages other than Python."""
