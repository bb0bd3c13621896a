"""Facts about pods for rules: where they can run, what interrupts them, and which a selector selects."""
