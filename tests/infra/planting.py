"""Applies the changes of planted.json inside the previewed program, as `flexspot.infra.planting` of a test's own checkout.

The changes apply to the resources that components register, as a user's transform may do. Inputs that a component itself refuses would
never reach the policies.
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
    """Return the program with the defects."""
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
