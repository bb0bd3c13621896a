"""Which rules judge a view: worked out once for each class of views, so that a rule costs nothing where it has nothing to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from policies.rule import Level

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from policies.inventory import View
    from policies.rule import Parameters
    from policies.rules import AnyRule
    from policies.settings import Settings


class Charge(NamedTuple):
    """A rule that is to judge a view, with its parameters. `place` is its place among all rules: findings are told in that order."""

    place: int
    rule: AnyRule
    parameters: Parameters


class Dispatch:
    """The rules of one run that are not disabled: those that judge a view `among` others, or those that judge it alone."""

    def __init__(self, rules: Iterable[AnyRule], settings: Settings, *, among: bool) -> None:
        self._charges = tuple(
            Charge(place, rule, settings.parameters(rule))
            for place, rule in enumerate(rules)
            if (rule.judge_among is not None) is among and settings.level(rule) is not Level.DISABLED
        )
        self._of_class: dict[type[View], tuple[Charge, ...]] = {}

    def charges(self, views: Sequence[View]) -> list[tuple[Charge, View]]:
        """Each rule with each of the views that it looks at: by rule, then in the order of the views."""
        found = [(charge, view) for view in views for charge in self._of(type(view))]
        if len(views) > 1:
            found.sort(key=lambda each: each[0].place)
        return found

    def _of(self, kind: type[View]) -> tuple[Charge, ...]:
        if kind not in self._of_class:
            self._of_class[kind] = tuple(charge for charge in self._charges if issubclass(kind, charge.rule.looks_at))
        return self._of_class[kind]
