"""The forms in which a report is printed."""
