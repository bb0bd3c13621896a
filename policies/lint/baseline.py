"""The findings that a repository already had when it took up the linter: listed in a file, and accepted until they are gone."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from capacity.values.errors import ExitCode, ExplainedError
from policies.lint.report import Report, Suppression, fingerprints

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from policies.lint.report import Placed

_VERSION: Final = 1


def written_baseline(report: Report, path: Path) -> str:
    """The text of a baseline with every open finding of a run, for a file at `path`: one line each, so that a review shows what changes."""
    entries = [
        {"fingerprint": name, "rule": each.finding.rule, "path": relative, "object": str(each.finding.object)}
        for each, relative, name in _named(report.open, path)
    ]
    lines = ",\n".join(f"    {json.dumps(entry)}" for entry in entries)
    return f'{{\n  "version": {_VERSION},\n  "findings": [' + (f"\n{lines}\n  ]\n}}\n" if lines else "]\n}\n")


def with_baseline(report: Report, path: Path) -> Report:
    """The report with what the baseline at `path` lists suppressed, and with the count of entries that nothing answers to any more.

    Raises ExplainedError for a file that is no baseline.
    """
    listed = _read(path)
    accepted = Suppression(f"in the baseline {path.name}")
    names = {id(each): name for each, _, name in _named(report.open, path)}
    findings = tuple(replace(each, suppressed=accepted) if names.get(id(each)) in listed else each for each in report.findings)
    return replace(report, findings=findings, settled=len(listed - set(names.values())))


def _named(findings: Iterable[Placed], path: Path) -> list[tuple[Placed, str, str]]:
    """Findings with their path as seen from the baseline's folder, wherever the linter is started, and their name."""
    listed = list(findings)
    relative = {each.path: os.path.relpath(each.path, path.parent).replace(os.sep, "/") for each in listed}
    return [(each, relative[each.path], name) for each, name in zip(listed, fingerprints(listed, relative), strict=True)]


def _read(path: Path) -> frozenset[str]:
    try:
        held: Any = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise _unusable(path, "it does not exist", f"write it with --baseline {path} --write-baseline.") from error
    except OSError as error:
        raise _unusable(path, f"it cannot be read: {error.strerror}", "name another file.") from error
    except (ValueError, RecursionError) as error:
        raise _unusable(path, "it is not JSON", "write it anew with --write-baseline.") from error
    listed = cast("dict[str, Any]", held).get("findings") if isinstance(held, dict) else None
    version = cast("dict[str, Any]", held).get("version") if isinstance(held, dict) else None
    entries = cast("list[Any]", listed) if isinstance(listed, list) else [None]
    names = [cast("dict[str, Any]", each).get("fingerprint") if isinstance(each, dict) else None for each in entries]
    if version != _VERSION or not all(isinstance(name, str) for name in names):
        raise _unusable(path, f"it is no baseline of version {_VERSION}", "write it anew with --write-baseline.")
    return frozenset(str(name) for name in names)


def _unusable(path: Path, why: str, remedy: str) -> ExplainedError:
    return ExplainedError(f"the baseline {path} cannot be used: {why}.", remedy, exit_code=ExitCode.BAD_USAGE)
