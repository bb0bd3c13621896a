"""The whole of `flexspot lint`, without its command line: from paths to a report."""

from __future__ import annotations

import os
import sys
import traceback
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from capacity.values.errors import ExitCode, ExplainedError
from capacity.values.verdict import Verdict
from policies.lint.cores import read_on_all_cores
from policies.lint.file_reading import read_text
from policies.lint.judging import judged, told
from policies.lint.limits import FILE_BYTES
from policies.lint.manifests import InputProblem, Problem, Reading, Skipped
from policies.lint.places import Places
from policies.lint.report import Placed, Report, Suppression
from policies.lint.walking import Walk
from policies.rule import Level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policies.finding import Finding
    from policies.lint.configuration import Configuration
    from policies.suppression import Suppression as Accepted

STDIN: Final = "<stdin>"

_TOLD_OF: Final = (Verdict.FAIL, Verdict.SUPPRESSED, Verdict.UNKNOWN)


def lint(paths: Sequence[str], configuration: Configuration, *, details: bool = False) -> Report:
    """Judges what the files at `paths` hold, under folders all files of a known ending, and standard input for `-`.

    What is undecided is placed at its object, and with `details` at its field: that takes time, and only who lists it looks there.

    Raises ExplainedError for a path that is not there.
    """
    for path in paths:
        if path != "-" and not os.path.exists(path):  # noqa: PTH110 -- the same that the walk does
            raise ExplainedError(
                f"there is no file or folder {path}.", "name one that is there, or - for standard input.", exit_code=ExitCode.BAD_USAGE
            )
    given = {STDIN: sys.stdin.buffer.read(FILE_BYTES + 1)} if "-" in paths else {}
    reading = _read([path for path in paths if path != "-"], given, configuration)
    patches = set(reading.patches)
    manifests = [each for each in reading.manifests if each.path not in patches]
    reading.skipped[Skipped.PATCH] += len(reading.manifests) - len(manifests)
    manifests.sort(key=lambda each: (each.path, each.line, each.chunk))

    places = Places(lambda path: given[path] if path in given else Path(path).read_bytes())
    told_of: list[Placed] = []
    for manifest, finding in judged(manifests, configuration):
        if finding.verdict in _TOLD_OF:
            wanted = details or finding.verdict is not Verdict.UNKNOWN
            line = places.line(manifest, finding.at, finding.message) if wanted else manifest.line
            told_of.append(_placed(finding, manifest.path, line, finding.suppressed, configuration))
    for problem in reading.problems:
        finding, accepted = told(problem, configuration)
        if configuration.level(finding.rule) is not Level.DISABLED:
            told_of.append(_placed(finding, problem.path, problem.line, accepted, configuration))
    told_of.sort(key=lambda each: each.order)
    return Report(
        findings=tuple(each for each in told_of if each.finding.verdict is not Verdict.UNKNOWN),
        undecided=tuple(each for each in told_of if each.finding.verdict is Verdict.UNKNOWN),
        fail_on=configuration.fail_on,
        files=reading.files,
        documents=reading.documents,
        objects=len(manifests),
        skipped={reason: count for reason, count in reading.skipped.items() if count},
    )


def _read(paths: list[str], given: dict[str, bytes], configuration: Configuration) -> Reading:
    skipped: Counter[Skipped] = Counter()
    walk = Walk(skipped, configuration.exclude, str(configuration.folder))
    reading = read_on_all_cores([(path, _size(path)) for path in walk.files(paths)], read_file)
    for path, text in given.items():
        reading.add(read_text(path, text))
    reading.skipped += skipped
    reading.problems += [_unreadable(folder, f"the folder cannot be listed: {reason}") for folder, reason in walk.unreadable.items()]
    return reading


def _unreadable(path: str, reason: str) -> Problem:
    return Problem(InputProblem.UNREADABLE, path, 1, ("", "", "", ""), reason)


def read_file(path: str) -> Reading:
    """What one file holds. Never raises for what a file is: what keeps it from being read is a problem of it."""
    try:
        with Path(path).open("rb") as file:
            return read_text(path, file.read(FILE_BYTES + 1))
    except OSError as error:
        reason = f"it cannot be opened: {error.strerror}"
    except Exception as error:  # noqa: BLE001 -- one file must not stop the others
        last = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"its reader is broken: {type(error).__name__} in {Path(last.filename).name}, line {last.lineno}; report it"
    return Reading(problems=[_unreadable(path, reason)], files=1)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 -- pathlib takes several times as long over thousands of files
    except OSError:
        return 0


def _placed(finding: Finding, path: str, line: int, accepted: Accepted | None, configuration: Configuration) -> Placed:
    suppressed = None
    if accepted:
        until = accepted.until.isoformat() if accepted.until else None
        configured = any(each.suppression is accepted for each in configuration.settings.suppressions)
        suppressed = Suppression(str(accepted.reason), until, accepted.by, in_source=not configured)
    # Only what the configuration calls advisory does not bind: where it says nothing, the severity alone decides.
    binding = configuration.settings.levels.get(finding.rule) is not Level.ADVISORY
    return Placed(finding, path, line, suppressed, binding)
