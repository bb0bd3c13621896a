"""The components for programs in other languages than Python."""
