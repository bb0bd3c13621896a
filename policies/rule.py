"""What a rule is: its metadata and a few lines of logic over one view of the inventory."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from capacity.values.verdict import Outcome, Verdict
from policies.inventory import View

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from capacity.values.verdict import Addition, Severity
    from policies.inventory import Inventory


class Level(StrEnum):
    """What a violation does to a deployment.

    MANDATORY: preview and up stop. ADVISORY: it is told of. DISABLED: the rule is not run.
    """

    MANDATORY = "mandatory"
    ADVISORY = "advisory"
    DISABLED = "disabled"


class Cloud(StrEnum):
    """Where a rule has something to say: on GKE, on EKS, or on both."""

    GKE = "gke"
    EKS = "eks"


BOTH_CLOUDS = (Cloud.GKE, Cloud.EKS)

Setting = int | str | tuple[str, ...]
"""The value of a parameter."""


@dataclass(frozen=True)
class Parameter:
    """A number, a text or a list of texts that a user of the rule may set; which of the three, the default says."""

    name: str
    default: Setting
    meaning: str

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the parameter."""
        about = {"description": self.meaning}
        match self.default:
            case int():
                return {"type": "integer", "minimum": 0, "default": self.default, **about}
            case str():
                return {"type": "string", "minLength": 1, "default": self.default, **about}
            case _:
                texts = {"type": "string", "minLength": 1}
                return {"type": "array", "items": texts, "minItems": 1, "default": list(self.default), **about}

    def read(self, written: Any) -> Setting:
        """The setting that a person wrote. Raises ValueError saying what is allowed."""
        match self.default:
            case int():
                if isinstance(written, int) and not isinstance(written, bool) and written >= 0:
                    return written
                raise ValueError("a whole number of 0 or more")
            case str():
                if isinstance(written, str) and written:
                    return written
                raise ValueError("a text")
            case _:
                texts = cast("list[Any]", written) if isinstance(written, list) else []
                if texts and all(isinstance(text, str) and text for text in texts):
                    return tuple(texts)
                raise ValueError("a list of at least one text")


@dataclass(frozen=True)
class Parameters:
    """The settings of one rule by parameter name; what nobody set is the default."""

    settings: Mapping[str, Setting]

    def number(self, name: str) -> int:
        """A parameter whose default is a number."""
        return cast("int", self.settings[name])

    def text(self, name: str) -> str:
        """A parameter whose default is a text."""
        return cast("str", self.settings[name])

    def texts(self, name: str) -> tuple[str, ...]:
        """A parameter whose default is a list of texts."""
        return cast("tuple[str, ...]", self.settings[name])


ViewT = TypeVar("ViewT", bound=View)


@dataclass(frozen=True, kw_only=True)
class Rule(Generic[ViewT]):
    """One rule. `name` is the problem in kebab-case and the name of the rule's file; `code` is short and never changes.

    `judge` is called for each view of the kinds in `looks_at`; a rule that needs other objects too has `judge_among` instead, which is
    given everything. Either decides what is provable; whether the view is what it seems, and whether it is only a part of an object, is
    seen to by policies.core. `why`, `remediation` and `link` are for the person who is stopped by it; `sources` say where other facts come
    from.
    A `locked` rule cannot be suppressed; an organisation locks more of them in its settings.
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

    @property
    def page(self) -> str:
        """The rule's page in this repository, which is made from what stands here."""
        return f"docs/rules/{self.name}.md"

    def defaults(self) -> Parameters:
        """The rule's parameters as shipped."""
        return Parameters({parameter.name: parameter.default for parameter in self.parameters})


PASSES = Outcome(Verdict.PASS)


def fails(reason: str, remedy: str = "", at: str = "", adds: Addition | None = None) -> Outcome:
    """Broken, whatever the values not known yet turn out to be. `at` is the path of the field that breaks it; see Outcome."""
    return Outcome(Verdict.FAIL, reason, remedy, at, adds)


def undecided(reason: str) -> Outcome:
    """It hangs on a value not known yet; `reason` names it."""
    return Outcome(Verdict.UNKNOWN, reason)


def not_applicable(reason: str) -> Outcome:
    """The rule does not speak about this view."""
    return Outcome(Verdict.NOT_APPLICABLE, reason)
