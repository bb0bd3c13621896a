"""The plan file of a preview: the plan, its resources, the policy results and the cost."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from capacity.catalog.data_files import read_records
from capacity.catalog.price_book import PriceFile
from capacity.cost.costed_plan import VERSION, costed
from capacity.cost.expected_use import shipped_use
from capacity.cost.plan_comparison import plan_cost_data
from capacity.cost.plan_cost_lines import plan_cost
from capacity.plan.model import plan_data
from capacity.values.engine_marks import SIGNATURE, UNKNOWNS
from capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from pathlib import Path

    from pulumi.automation import EngineEvent

    from capacity.plan.stack_plan import StackPlan

_HIDDEN = "[secret]"
"""What the engine's events have in place of a secret."""


@dataclass
class PlannedResources:
    """What the engine reports during a preview: each resource, by URN, and each policy violation."""

    resources: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    verdicts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def hear(self, event: EngineEvent) -> None:
        """Takes note of one event."""
        step = event.resource_pre_event
        if step is not None and step.metadata.new is not None:
            new = step.metadata.new
            self.resources[new.urn] = {
                "urn": new.urn,
                "type": new.type,
                "name": new.urn.rpartition("::")[2],
                "parent": new.parent or None,
                "inputs": _plain(new.inputs or {}),
            }
        if event.policy_event is not None:
            told = event.policy_event
            self.verdicts.append(
                {
                    "policy": told.policy_name,
                    "level": told.enforcement_level,
                    "resource": told.resource_urn or None,
                    "message": told.message.strip(),
                }
            )


def write_plan_file(path: Path, stack: str, planned: StackPlan, heard: PlannedResources, own_prices: Path | None) -> None:
    """Writes the file; `own_prices` is the stack's own price file. Raises ExplainedError when it cannot be written."""
    cost = plan_cost(costed(planned.plan), planned.prices, shipped_use())
    own = None if own_prices is None else read_records(own_prices, PriceFile).model_dump(mode="json")
    content = {
        "version": VERSION,
        "stack": stack,
        "cloud": planned.plan.cloud.value,
        "plan": plan_data(planned.plan),
        "resources": list(heard.resources.values()),
        "policies": heard.verdicts,
        "cost": {**plan_cost_data(cost), "own_prices": own},
    }
    try:
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        remedy = "name a file in a folder that is there and may be written."
        raise ExplainedError(f"{path} cannot be written: {error.strerror}.", remedy, exit_code=ExitCode.BAD_USAGE) from error


def _plain(value: Any) -> Any:
    """Translates the engine's marks of unknown and secret values."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {"$secret": True} if SIGNATURE in fields else {str(key): _plain(each) for key, each in fields.items()}
    if isinstance(value, list):
        return [_plain(each) for each in cast("list[Any]", value)]
    if value == _HIDDEN:
        return {"$secret": True}
    return {"$unknown": True} if isinstance(value, str) and value in UNKNOWNS else value
