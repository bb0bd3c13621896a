"""A program with invalid settings."""

from __future__ import annotations

import pytest
from program_declarations import Preview, declared, shipped

from flexspot.capacity.values.errors import SettingsError


def test_invalid_settings_stop_the_program_before_any_resource() -> None:
    settings = shipped("local")
    settings["teams"][0]["shares"] = {"l4-spot": 40}
    preview = Preview()

    with pytest.raises(SettingsError, match="add up to 42 GPUs, but its ceiling is 4"):
        declared("local", settings, preview)

    assert preview.declarations.made == {}
