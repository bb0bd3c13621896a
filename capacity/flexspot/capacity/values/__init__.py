"""Small values that every other room uses: errors, verdicts, names, quantities, money. Nothing here knows of a cloud."""
