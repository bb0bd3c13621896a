"""What a person sets of a rule: numbers, texts, lists of texts, each with its default and its meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

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
                raise ValueError("a string")
            case _:
                texts = cast("list[Any]", written) if isinstance(written, list) else []
                if texts and all(isinstance(text, str) and text for text in texts):
                    return tuple(texts)
                raise ValueError("a list of at least one string")


@dataclass(frozen=True)
class Parameters:
    """The settings of one rule by parameter name; what nobody set, and is not among the `written`, is the default."""

    settings: Mapping[str, Setting]
    written: frozenset[str] = frozenset()

    def is_set(self, name: str) -> bool:
        """Whether somebody set a parameter, be it to its default."""
        return name in self.written

    def number(self, name: str) -> int:
        """A parameter whose default is a number."""
        return cast("int", self.settings[name])

    def text(self, name: str) -> str:
        """A parameter whose default is a text."""
        return cast("str", self.settings[name])

    def texts(self, name: str) -> tuple[str, ...]:
        """A parameter whose default is a list of texts."""
        return cast("tuple[str, ...]", self.settings[name])
