"""Small values that all packages use: errors, verdicts, names, quantities, money. Nothing here depends on a cloud."""
