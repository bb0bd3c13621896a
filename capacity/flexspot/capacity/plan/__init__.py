"""From settings to plan, or to everything that keeps the settings from working."""
