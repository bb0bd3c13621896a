"""The page of all settings is what the settings say of themselves, and the links to it lead somewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from capacity.settings.platform import MODELS
from capacity.settings.stack_schema import PAGE, page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.catalog.platform import Platform


def settings_of(schema: dict[str, Any]) -> Iterator[str]:
    """The names of all settings in a model and in those inside it."""
    for model in (schema, *schema.get("$defs", {}).values()):
        yield from model.get("properties", {})


def test_the_page_is_written_from_the_settings() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: python -m capacity.settings.stack_schema"


@pytest.mark.parametrize("platform", MODELS, ids=str)
def test_the_page_has_a_row_for_every_setting(platform: Platform) -> None:
    rows = set(re.findall(r"^\| `(\w+)` \|", page(), re.MULTILINE))

    assert set(settings_of(MODELS[platform].model_json_schema())) - rows == set()


@pytest.mark.slow
def test_every_link_to_a_part_of_the_page_leads_to_one() -> None:
    headings = {heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", page(), re.MULTILINE)}
    texts = [path.read_text(encoding="utf-8") for path in PAGE.parent.rglob("*.md")]
    asked = {target for text in (page(),) for target in re.findall(r"\]\(#([\w-]+)\)", text)}
    asked |= {target for text in texts for target in re.findall(r"settings-reference\.md#([\w-]+)", text)}

    assert len(asked) > 15
    assert asked - headings == set()
