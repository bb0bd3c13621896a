"""The linter's configuration file: the policy pack's configuration, and what only files need."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from capacity.values.errors import ExitCode, ExplainedError
from capacity.values.verdict import Severity
from policies.lint.input_rules import INPUT_RULES
from policies.lint.yaml_reading import DocumentRefusedError, documents_in
from policies.rules import all_rules
from policies.settings import DEFAULTS, Settings, read_settings

if TYPE_CHECKING:
    from policies.rule import Level
    from policies.rules import AnyRule

FILE_NAME: Final = "flexspot-lint.yaml"

PACK: Final = "flexspot"
"""The key under which the policy pack has its configuration; the file has the same under the same."""

_KEYS: Final = (PACK, "exclude", "fail-on", "closed", "baseline")


@dataclass(frozen=True)
class Configuration:
    """What the linter is told beside its paths. `folder` is where the file is, which its patterns and paths are relative to."""

    settings: Settings = DEFAULTS
    exclude: tuple[str, ...] = ()
    fail_on: Severity = Severity.HIGH
    closed: bool = False
    baseline: Path | None = None
    folder: Path = Path()

    def level(self, rule: str) -> Level | None:
        """The level of a rule; None for what is no rule, such as a defect of a suppression."""
        return next((self.settings.level(each) for each in judged_rules() if each.name == rule), None)


def judged_rules() -> tuple[AnyRule, ...]:
    """Every rule that can have a finding in a file: those on objects, and those on the text itself."""
    return (*all_rules(), *INPUT_RULES)


def find_configuration(start: Path) -> Path | None:
    """The configuration file in `start` or in the nearest folder above it, up to the one that holds a git repository."""
    for folder in (start, *start.parents):
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
        if (folder / ".git").exists():
            return None
    return None


def read_configuration(path: Path) -> Configuration:
    """The configuration that a file holds. Raises ExplainedError with all that is wrong with it."""
    try:
        documents = documents_in(path.read_bytes())
    except OSError as error:
        raise _unusable(path, [f"it cannot be read: {error.strerror}"]) from error
    except DocumentRefusedError as error:
        raise _unusable(path, [f"line {error.line}: {error}"]) from error
    problems = [f"line {each.line}: the key {each.key} stands there again" for document in documents for each in document.duplicates]
    written: Any = documents[0].value if documents else {}
    if len(documents) > 1 or not isinstance(written, dict):
        raise _unusable(path, ["it must be one mapping with the keys " + ", ".join(_KEYS)])
    held = cast("dict[str, Any]", written)
    problems += [f"{key}: there is no such key; there are {', '.join(_KEYS)}" for key in held if key not in _KEYS]
    settings = _settings(held.get(PACK), problems)
    exclude = _patterns(held.get("exclude"), problems)
    fail_on = _severity(held.get("fail-on"), problems)
    closed = held.get("closed", False)
    if not isinstance(closed, bool):
        problems.append("closed: allowed is true or false")
    baseline = held.get("baseline")
    if baseline is not None and not isinstance(baseline, str):
        problems.append("baseline: allowed is the path of a file, relative to this one")
    if problems:
        raise _unusable(path, problems)
    folder = path.resolve().parent
    return Configuration(settings, exclude, fail_on, closed is True, folder / baseline if isinstance(baseline, str) else None, folder)


def _settings(written: Any, problems: list[str]) -> Settings:
    if written is None:
        return DEFAULTS
    if not isinstance(written, dict):
        problems.append(f"{PACK}: allowed is a mapping of rules to levels and parameters")
        return DEFAULTS
    settings = read_settings(cast("dict[str, Any]", written), judged_rules())
    problems += [f"{PACK}.{problem}" for problem in settings.problems]
    return settings


def _patterns(written: Any, problems: list[str]) -> tuple[str, ...]:
    listed = cast("list[Any]", written) if isinstance(written, list) else []
    texts = tuple(each for each in listed if isinstance(each, str))
    if written is not None and (not isinstance(written, list) or len(texts) != len(listed)):
        problems.append("exclude: allowed is a list of patterns such as tests/* of paths relative to this file")
    return texts


def _severity(written: Any, problems: list[str]) -> Severity:
    if written is None:
        return Severity.HIGH
    if written not in list(Severity):
        problems.append(f"fail-on: {written!r} is not allowed; allowed is one of {', '.join(Severity)}")
        return Severity.HIGH
    return Severity(written)


def _unusable(path: Path, problems: list[str]) -> ExplainedError:
    return ExplainedError(
        f"the configuration {path} cannot be used.",
        "mend each line above, then run again; docs/lint.md has an example.",
        exit_code=ExitCode.BAD_USAGE,
        evidence=tuple(problems),
    )
