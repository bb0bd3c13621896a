"""The JSON schema of a stack file, by which editors complete and check what is written."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from capacity.catalog.machines import machines_of
from capacity.catalog.platform import VOCABULARIES, Platform
from capacity.settings.platform import MODELS
from capacity.settings.pools import EksPool, GkePool, LocalPool
from capacity.settings.stack_file import SETTINGS_KEY

_POOLS = {Platform.LOCAL: LocalPool, Platform.GKE: GkePool, Platform.EKS: EksPool}


def stack_file_schema() -> dict[str, Any]:
    """The schema of a whole `Pulumi.<stack>.yaml`: our one key strictly, other programs' keys as they like."""
    _, generated = models_json_schema([(model, "validation") for model in MODELS.values()], ref_template="#/$defs/{model}")
    definitions: dict[str, Any] = generated["$defs"]
    _name_the_machines(definitions)
    for each in definitions.values():
        for told in each.get("properties", {}).values():
            # As one line: an editor wraps it where its window ends.
            told["description"] = " ".join(told["description"].split())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Flexspot stack file",
        "type": "object",
        "required": ["config"],
        "properties": {
            "config": {
                "type": "object",
                "required": [SETTINGS_KEY],
                "properties": {
                    SETTINGS_KEY: {
                        "type": "object",
                        "required": ["cloud"],
                        "properties": {"cloud": {"enum": [platform.value for platform in MODELS]}},
                        # One branch a cloud: an editor then tells what is wrong with that branch, and not that none of three fits.
                        "allOf": [
                            {
                                "if": {"properties": {"cloud": {"const": platform.value}}, "required": ["cloud"]},
                                "then": {"$ref": f"#/$defs/{model.__name__}"},
                            }
                            for platform, model in MODELS.items()
                        ],
                    }
                },
            }
        },
        "$defs": definitions,
    }


def _name_the_machines(definitions: dict[str, Any]) -> None:
    """Machines are names of the catalog; an editor lists those that have GPUs where a pool is written."""
    for platform in MODELS:
        machines = machines_of(VOCABULARIES[platform].catalog).values()
        names = [machine.name for machine in machines if machine.gpu]
        fields: dict[str, Any] = definitions[_POOLS[platform].__name__]["properties"]
        fields["machine"]["enum"] = names
        if "alternatives" in fields:
            fields["alternatives"]["items"]["enum"] = names
