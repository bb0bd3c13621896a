from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from capacity.settings.platform import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.catalog.platform import Platform

PAGE = Path(__file__).parents[3] / "docs" / "settings.md"


def settings_of(schema: dict[str, Any]) -> Iterator[str]:
    """The names of all settings in a model and in those inside it."""
    for model in (schema, *schema.get("$defs", {}).values()):
        yield from model.get("properties", {})


@pytest.mark.parametrize("platform", MODELS, ids=str)
def test_the_page_of_stack_files_names_every_setting(platform: Platform) -> None:
    code = " ".join(re.findall(r"`[^`]+`|^    .*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))

    missing = {name for name in settings_of(MODELS[platform].model_json_schema()) if not re.search(rf"\b{name}\b", code)}

    assert missing == set()
