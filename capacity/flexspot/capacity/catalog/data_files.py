"""Loading of the dated data files: one strict way from a YAML file to validated records."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


class Record(BaseModel):
    """A row of a data file. It is frozen and rejects unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class DescribedRecord(Record):
    """A record that uses the docstring below each field as the field's description, also in a JSON schema."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    @classmethod
    def default(cls, field: str) -> Any:
        """Return the default of a field, for callers without a stack file. Raises KeyError for an unknown field."""
        return cls.model_fields[field].get_default(call_default_factory=True)

    @classmethod
    def bounds(cls, field: str) -> tuple[int, int]:
        """Return the least and greatest value of an integer field. Raises ValueError unless it has both bounds."""
        bounds = cls.model_fields[field].metadata
        [least] = [bound.ge for bound in bounds if hasattr(bound, "ge")]
        [most] = [bound.le for bound in bounds if hasattr(bound, "le")]
        return least, most


class Source(Record):
    """The place and date at which figures were read."""

    citation: Annotated[str, Field(min_length=10)]
    as_of: date
    verified: bool
    """False for figures that were never checked against the vendor's own list."""
    undated: bool = False
    """True if `as_of` is the day of reading because the source has no date. Its figures may be older, so it is not verified."""

    @model_validator(mode="after")
    def _what_has_no_date_is_not_verified(self) -> Source:
        if self.undated and self.verified:
            raise ValueError("verified is true of an undated source, whose figures have no known day")
        return self


class SourcedFile(Record):
    """A data file in which every row, at any depth, names one of `sources` as its `source`."""

    sources: dict[str, Source]

    @model_validator(mode="after")
    def _rows_are_sourced(self) -> Self:
        for name, source in _sourced(self, "file"):
            if source not in self.sources:
                raise ValueError(f"{name}: source {source!r} is not one of {', '.join(self.sources)}")
        return self


def _sourced(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield each row's name and the name of its source. A row in a list gets the name of its first text."""
    members: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, Record):
        fields = members = list(value)
        name = name or next((each for each in (getattr(value, "what", None), *dict(fields).values()) if isinstance(each, str)), "row")
        yield from ((name, each) for key, each in fields if key == "source" or key.endswith("_source"))
    elif isinstance(value, dict):
        members = cast("dict[Any, Any]", value).items()
    elif isinstance(value, (list, tuple)):
        members = (("", each) for each in cast("list[Any]", value))
    for key, each in members:
        # Most members are texts and numbers, which have no members.
        if isinstance(each, (Record, dict, list, tuple)):
            yield from _sourced(each, str(key))


class DataFileError(ValueError):
    """A data file that breaks its schema; the message names the file, the row and the field."""


RecordT = TypeVar("RecordT", bound=Record)


def read_records(path: Path, model: type[RecordT]) -> RecordT:
    """Return the content of `path` as one validated `model`.

    Raises DataFileError with all problems, each as `place: problem`.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        return model.model_validate(content)
    except yaml.YAMLError as error:
        raise DataFileError(f"{path.name} is not YAML: {error}") from error
    except ValidationError as error:
        # pydantic puts its own words before the message of a model's validator.
        errors = [(".".join(map(str, each["loc"])) or "(whole file)", each["msg"].removeprefix("Value error, ")) for each in error.errors()]
        problems = [f"  {place}: {what}" for place, what in errors]
        raise DataFileError("\n".join([f"{path.name} has {error.error_count()} problem(s):", *problems])) from error
