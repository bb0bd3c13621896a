"""Text that a spreadsheet opens and runs nothing of."""

from __future__ import annotations


def spreadsheet_cell(text: str) -> str:
    """A spreadsheet takes text that begins like this for a formula, which could send its data elsewhere."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
