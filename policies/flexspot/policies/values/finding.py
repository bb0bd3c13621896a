"""Findings of rules and of the manifest reader about one object, and suppressions that accept violations for a reason."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

from flexspot.capacity.values.engine_marks import SECRET, SIGNATURE, UNKNOWNS
from flexspot.capacity.values.quantities import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from flexspot.capacity.values.verdict import Addition, ObjectIdentity, Severity, Verdict
    from flexspot.policies.values.field import Field


PREFIX = "flexspot.dev/ignore-"
"""An annotation's key is this prefix and a rule's name. Its value is `REASON`, or `REASON; until=2026-12-31; by=team-a`."""

RULE, CODE = "suppression", "FLX900"
"""Rule name and code of findings about a suppression itself."""

_KEYS = ("until", "by")


@dataclass(frozen=True)
class Suppression:
    """A reason to accept violations of a rule."""

    reason: str
    until: date | None = None
    """The last day it counts, or None for no end."""
    by: str = ""
    """The person or team that accepts the violation."""
    in_source: bool = False
    """True if the object itself, or a comment next to it, contains the suppression."""

    def __str__(self) -> str:
        return f"{self.reason}{f', until {self.until}' if self.until else ''}{f', by {self.by}' if self.by else ''}"


@dataclass(frozen=True)
class ConfiguredSuppression:
    """A suppression from the settings."""

    rule: str
    """Name of the rule."""
    objects: str
    """Pattern of the objects, with * for any text.

    Compared with `apiVersion/kind/namespace/name`, `kind/namespace/name`, `kind/name` and the name alone.
    """
    suppression: Suppression

    def covers(self, rule: str, identity: ObjectIdentity) -> bool:
        """Return whether the suppression applies to this rule and object."""
        spellings = (
            str(identity),
            "/".join(part for part in (identity.kind, identity.namespace, identity.name) if part),
            f"{identity.kind}/{identity.name}",
            identity.name,
        )
        return rule == self.rule and any(fnmatchcase(spelling, self.objects) for spelling in spellings)


def read_suppression(reason: object, until: object = None, by: object = "") -> Suppression:
    """Return the suppression. Raises ValueError if the reason is missing or `until` is not a date."""
    text = str(reason or "").strip()
    if not text:
        raise ValueError("it gives no reason; say why the violation is accepted")
    try:
        day = None if until is None or until == "" else date.fromisoformat(str(until))
    except ValueError:
        raise ValueError(f"until={until} is not a date; write one such as until=2026-12-31") from None
    return Suppression(text, day, str(by or "").strip())


def read_annotation(text: str) -> Suppression:
    """Return the suppression in an annotation's value. Raises ValueError if it is malformed."""
    reason, *rest = text.split(";")
    settings: dict[str, str] = {}
    for part in rest:
        key, equals, value = (each.strip() for each in part.partition("="))
        if equals and key in _KEYS:
            settings[key] = value
        elif key:
            # A semicolon may belong to the reason.
            reason = f"{reason};{part}"
    return read_suppression(reason, settings.get("until"), settings.get("by", ""))


def written_on(annotations: Iterable[Field]) -> Iterator[tuple[str, str]]:
    """Yield the rule name and the value of each annotation that suppresses a rule. The value is empty if it is not known yet."""
    for mapping in annotations:
        for key, value in mapping.parts().named:
            if key.startswith(PREFIX):
                text = value.text()
                yield key.removeprefix(PREFIX), text if isinstance(text, str) else ""


@dataclass(frozen=True)
class Suppressions:
    """The suppressions of one object."""

    valid: Mapping[str, Suppression]
    """Valid suppressions, by rule name."""
    problems: tuple[str, ...]
    """Reasons why other suppressions do not count."""


NOTHING = Suppressions({}, ())


def suppressions_of(
    annotations: Iterable[Field],
    identity: ObjectIdentity,
    configured: Iterable[ConfiguredSuppression],
    locked: Mapping[str, bool],
    today: date,
) -> Suppressions:
    """Return the suppressions that apply to one object.

    `locked` has every rule name as a key, with True if the rule must not be suppressed.
    """
    valid: dict[str, Suppression] = {}
    problems: list[str] = []

    def take(rule: str, place: str, read: Any) -> None:
        try:
            _check_rule(rule, locked)
            suppression: Suppression = read()
            check_suppression(rule, suppression, locked, today)
        except ValueError as error:
            problems.append(f"{place}: {error}")
        else:
            valid.setdefault(rule, suppression)

    for rule, text in written_on(annotations):
        take(rule, f"annotation {PREFIX}{rule}", lambda text=text: read_annotation(text))
    for each in configured:
        if each.covers(each.rule, identity):
            take(each.rule, f"the settings' suppression of {each.rule} for {each.objects}", lambda each=each: each.suppression)
    return Suppressions(valid, tuple(problems))


def check_suppression(rule: str, suppression: Suppression, locked: Mapping[str, bool], today: date) -> None:
    """Raise ValueError if a suppression of a rule does not count: an unknown or locked rule, or an expired date."""
    _check_rule(rule, locked)
    if suppression.until and suppression.until < today:
        raise ValueError(f"it expired on {suppression.until}; fix the object, or set a later date")


def _check_rule(rule: str, locked: Mapping[str, bool]) -> None:
    if rule not in locked:
        nearest = get_close_matches(rule, sorted(locked), n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else f"allowed: {', '.join(sorted(locked))}"
        raise ValueError(f"there is no rule {rule!r}; {hint}")
    if locked[rule]:
        raise ValueError(f"rule {rule} is locked and cannot be suppressed; fix the object, or ask the owner of the rules")


_LISTED: Final = 12


def listed(names: Iterable[str]) -> str:
    """Return names for a message: the first twelve in order, and the number of the rest."""
    ordered = sorted(names)
    return ", ".join(ordered[:_LISTED]) + (f" and {len(ordered) - _LISTED} more" if len(ordered) > _LISTED else "")


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule's verdict about one object, ready to be shown."""

    rule: str
    code: str
    """The rule's short, stable id."""
    severity: Severity
    verdict: Verdict
    object: ObjectIdentity
    message: str
    remediation: str
    link: str = ""
    """Source of the rule's facts."""
    at: str = ""
    """Path of the field concerned, such as spec.limits."""
    page: str = ""
    """The rule's page."""
    suppressed: Suppression | None = None
    """The suppression that accepts the violation."""
    adds: Addition | None = None
    """An addition that certainly fixes it."""


SHOWN: Final = "a secret value"
"""Replacement of a secret in a message."""

_SHORT: Final = 4
"""Length from which a secret is hidden even inside a longer word. Shorter ones are hidden only as whole words."""

# maxNodeCount, spec: the name of a provider's field, which is public. Other keys are a user's words.
_FIELD_NAME = re.compile(r"[a-z]+(?:[A-Z][a-z0-9]*)*")


@dataclass(frozen=True)
class Secrets:
    """The secret texts of one object, or of all objects of a run."""

    texts: frozenset[str] = frozenset()

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        # The longest first: one secret may be the beginning of another.
        ordered = sorted(self.texts, key=lambda text: (-len(text), text))
        whole = (rf"(?<![A-Za-z0-9]){re.escape(text)}(?![A-Za-z0-9])" if len(text) < _SHORT else re.escape(text) for text in ordered)
        return re.compile("|".join(whole))

    def hidden_in(self, text: str) -> str:
        """Return the text with secrets replaced."""
        return self._pattern.sub(SHOWN, text) if self.texts else text

    def hide(self, finding: Finding) -> Finding:
        """Return the finding with secrets replaced in everything that comes from an object."""
        if not self.texts:
            return finding
        identity, accepted = finding.object, finding.suppressed
        return replace(
            finding,
            object=replace(identity, name=self.hidden_in(identity.name), namespace=self.hidden_in(identity.namespace)),
            message=self.hidden_in(finding.message),
            remediation=self.hidden_in(finding.remediation),
            at=self.hidden_in(finding.at),
            suppressed=accepted and replace(accepted, reason=self.hidden_in(accepted.reason), by=self.hidden_in(accepted.by)),
        )

    def joined(self, others: Secrets) -> Secrets:
        """Return these secrets and the others."""
        return Secrets(self.texts | others.texts) if others.texts else self

    @staticmethod
    def of_all(several: Iterable[Secrets]) -> Secrets:
        """Return the secrets of several objects. A finding about one of them must not reveal a secret of another."""
        return Secrets(frozenset[str]().union(*(each.texts for each in several)))


def secrets_in(inputs: Any) -> Secrets:
    """Return the texts in a resource's inputs that the engine sends in envelopes of secrets: values, and keys that are not field names."""
    return Secrets(frozenset(_enveloped(inputs)))


def _enveloped(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _enveloped(each)
    elif isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if fields.get(SIGNATURE) == SECRET:
            yield from _texts(fields.get("value"))
        else:
            for each in fields.values():
                yield from _enveloped(each)


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in a secret value, in each form in which a message may contain it."""
    if isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _texts(each)
    elif isinstance(value, dict):
        for key, each in cast("dict[str, Any]", value).items():
            if not _FIELD_NAME.fullmatch(key) and key != SIGNATURE:
                yield key
            yield from _texts(each)
    elif isinstance(value, bool):
        yield str(value).lower()
    elif isinstance(value, str | int | float) and value not in UNKNOWNS:
        written = str(int(value) if isinstance(value, float) and value.is_integer() else value)  # pyrefly: ignore[missing-attribute] -- of a float
        number = quantity(written)
        forms = (written.strip(), *(() if number is None else (str(number), f"{number:f}")))
        yield from (text for text in forms if text)
