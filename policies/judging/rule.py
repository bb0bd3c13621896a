"""What a rule is: its metadata and a few lines of logic over one view of the inventory."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from policies.inventory.views import View
from policies.values.parameters import Parameter, Parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    from capacity.values.verdict import Outcome, Severity
    from policies.inventory.views import Inventory


class Level(StrEnum):
    """What a violation does to a deployment.

    MANDATORY: preview and `up` stop. ADVISORY: it is reported. DISABLED: the rule does not run.
    """

    MANDATORY = "mandatory"
    ADVISORY = "advisory"
    DISABLED = "disabled"


class Cloud(StrEnum):
    """Where a rule has something to say: on GKE, on EKS, or on both."""

    GKE = "gke"
    EKS = "eks"


BOTH_CLOUDS = (Cloud.GKE, Cloud.EKS)

ViewT = TypeVar("ViewT", bound=View)


class WithoutCel(StrEnum):
    """Why a rule has no form in CEL, so that the API server is not given it."""

    OWN_PROGRAM = (
        "it is about what the platform's own program makes, which the policy pack judges before it is made, and which no team may make"
    )
    KUEUE_ADDS_IT = "Kueue adds what it asks for when it admits work, so that the API server would refuse what is right"
    BUILT_IN = "the API server sees to it by itself"
    COMPARES_OBJECTS = "it compares objects with one another, and what a policy is told of the platform does not take their place"


@dataclass(frozen=True, kw_only=True)
class Rule(Generic[ViewT]):
    """One rule. `name` is the problem in kebab-case and the name of the rule's file; `code` is short and never changes.

    `judge` is called for each view of the kinds in `looks_at`; a rule that needs other objects too has `judge_among` instead, which is
    given everything. Either decides what is provable; whether the view is what it seems, and whether it is only a part of an object, is
    seen to by policies.core. `why`, `remediation` and `link` are for the person who is stopped by it; `sources` say where other
    facts come from.
    A `locked` rule cannot be suppressed; an organisation locks more of them in its settings. A rule that has no form in
    policies.admission says why in `without_cel`.
    """

    code: str
    name: str
    severity: Severity
    level: Level
    clouds: tuple[Cloud, ...]
    looks_at: tuple[type[ViewT], ...]
    judge: Callable[[ViewT, Parameters], Outcome] | None = None
    judge_among: Callable[[ViewT, Parameters, Inventory], Outcome] | None = None
    why: str
    remediation: str
    link: str
    sources: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    locked: bool = False
    without_cel: WithoutCel | None = None

    @property
    def page(self) -> str:
        """The rule's page in this repository, which is made from what stands here."""
        return f"docs/rules/{self.name}.md"

    def defaults(self) -> Parameters:
        """The rule's parameters as shipped."""
        return Parameters({parameter.name: parameter.default for parameter in self.parameters})


AnyRule = Rule[Any]
