"""Values that a program marked as secret: judged as what they are, and never told.

Hidden in the finished texts, and not in each rule: a rule may quote whatever it reads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

from capacity.values.engine_marks import SECRET, SIGNATURE, UNKNOWNS
from capacity.values.quantities import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from policies.values.finding import Finding

SHOWN: Final = "a secret value"
"""What stands in a message where a secret would."""

_SHORT: Final = 4
"""A secret of fewer letters is hidden where it stands by itself; one so long within a longer word, too."""

# maxNodeCount, spec: a field's name, which says nothing that is not in the provider's documentation. Other keys are a person's words.
_FIELD_NAME = re.compile(r"[a-z]+(?:[A-Z][a-z0-9]*)*")


@dataclass(frozen=True)
class Secrets:
    """The texts that must not be told of one object, or of all objects of a run."""

    texts: frozenset[str] = frozenset()

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        # The longest first: one secret may be the beginning of another.
        ordered = sorted(self.texts, key=lambda text: (-len(text), text))
        whole = (rf"(?<![A-Za-z0-9]){re.escape(text)}(?![A-Za-z0-9])" if len(text) < _SHORT else re.escape(text) for text in ordered)
        return re.compile("|".join(whole))

    def hidden_in(self, text: str) -> str:
        """The text without what is secret."""
        return self._pattern.sub(SHOWN, text) if self.texts else text

    def hide(self, finding: Finding) -> Finding:
        """The finding without what is secret, in whatever of it comes from an object."""
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
        """These and others."""
        return Secrets(self.texts | others.texts) if others.texts else self

    @staticmethod
    def of_all(several: Iterable[Secrets]) -> Secrets:
        """Those of several objects: what one of them must not tell, a finding about another must not either."""
        return Secrets(frozenset[str]().union(*(each.texts for each in several)))


def secrets_in(inputs: Any) -> Secrets:
    """What stands in the envelopes of secrets in a resource's inputs, as the engine sends them: values, and keys that name no field."""
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
    """Every text in a secret, each in the forms in which a rule may write it."""
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
