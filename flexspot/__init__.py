"""The one name that an installed Flexspot has: its command, and the program of a stack.

A wheel holds the folders of the repository below it, as `flexspot.components` and so on (docs/decisions/0039); in a checkout they are
imported by their own names.
"""
