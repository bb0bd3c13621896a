"""Runs inside the program that is previewed, as `flexspot.infra.planting` of a test's own checkout: makes the changes of planted.json.

The changes come after the components, on what they register, as somebody's own transform may: what a component refuses by itself would
never get as far as the policies.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi

if TYPE_CHECKING:
    from collections.abc import Callable

PLANTED = Path(__file__).resolve().parents[3] / "planted.json"
"""`{NAME: [{"path", "value"?, "secret"?}]}`"""


def planting(main: Callable[[], None]) -> Callable[[], None]:
    """The program with the defect in it."""
    left = json.loads(PLANTED.read_text(encoding="utf-8"))

    def change(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
        if ":index:" in args.type_ or args.name not in left:
            return None
        props: Any = dict(args.props)
        for edit in left.pop(args.name):
            _apply(props, edit)
        return pulumi.ResourceTransformResult(props, args.opts)

    def program() -> None:
        pulumi.runtime.register_resource_transform(change)
        main()

    return program


def _apply(props: Any, edit: dict[str, Any]) -> None:
    *way, last = edit["path"]
    place = props
    for step in way:
        place = place[step]
    if "value" in edit:
        place[last] = pulumi.Output.secret(edit["value"]) if edit.get("secret") else edit["value"]
    else:
        del place[last]
