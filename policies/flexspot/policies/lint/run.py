"""The whole of `flexspot lint`, without its command line: from paths to a report; and own rules tried on fixtures."""

from __future__ import annotations

import os
import stat
import sys
import traceback
from collections import Counter
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.capacity.values.verdict import ObjectIdentity, Verdict
from flexspot.policies.core import judge, judge_scopes, of_suppression
from flexspot.policies.inventory.objects import KubernetesObject
from flexspot.policies.inventory.reading.source import from_manifest
from flexspot.policies.judging import Level, Settings
from flexspot.policies.lint.configuration import Configuration, problem_finding
from flexspot.policies.lint.file_reading import FilesRead, InputProblem, Manifest, Problem, Skipped, read_text
from flexspot.policies.lint.places import Comments, Places, Refused
from flexspot.policies.lint.report import LintReport, Placed
from flexspot.policies.lint.scopes import Scope, scopes_of
from flexspot.policies.lint.yaml_reading import FILE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flexspot.policies.own_rules import OwnRule
    from flexspot.policies.values.finding import Finding, Suppression


_TOLD_OF: Final = frozenset({Verdict.FAIL, Verdict.SUPPRESSED, Verdict.UNKNOWN})

_PART_BYTES: Final = 64 * 1024


def judged(
    manifests: Sequence[Manifest], scopes: Sequence[Scope], configuration: Configuration
) -> Iterator[tuple[Manifest, Finding, tuple[str, ...]]]:
    """Every finding of every rule about every manifest, with the names of the scopes that it is of; of passes rule and verdict alone."""
    sources = [from_manifest(manifest.value, partial=manifest.partial) for manifest in manifests]
    members = [scope.members for scope in scopes]
    pages = {number for number, scope in enumerate(scopes) if scope.excerpt}
    unread = {place for place, manifest in enumerate(manifests) if manifest.unread}
    rules, settings = configuration.rules_of_objects, configuration.running
    findings = judge_scopes(sources, rules, settings, members, closed=configuration.closed, excerpts=pages, unjudged=unread, told=_TOLD_OF)
    names = [scope.name for scope in scopes] if len(scopes) > 1 else [""] * len(scopes)
    for manifest, listed in zip(manifests, findings, strict=True):
        for finding, numbers in listed:
            yield manifest, finding, tuple(names[number] for number in numbers if names[number]) if numbers else ()


def told(problem: Problem, configuration: Configuration) -> tuple[Finding, Suppression | None]:
    """The finding that tells of a problem of the input, and why the configuration accepts it, if it does."""
    finding, settings = problem_finding(problem), configuration.settings
    accepted = (
        each.suppression
        for each in settings.suppressions
        if each.covers(finding.rule, finding.object) and (each.suppression.until is None or each.suppression.until >= settings.today)
    )
    return finding, None if finding.rule in settings.locked else next(accepted, None)


STDIN: Final = "<stdin>"


def lint(paths: Sequence[str], configuration: Configuration, *, details: bool = False) -> LintReport:
    """Judges what the files at `paths` hold, under folders all files of a known ending, and standard input for `-`.

    What is undecided is placed at its object, and with `details` at its field: that takes time, and only who lists it looks there.

    Raises ExplainedError for a path that is not there.
    """
    for path in paths:
        if path != "-" and not os.path.exists(path):  # noqa: PTH110 -- the same that the walk does
            raise ExplainedError(
                f"there is no file or folder {path}.", "name one that exists, or - for standard input.", exit_code=ExitCode.BAD_USAGE
            )
    given = {STDIN: sys.stdin.buffer.read(FILE_BYTES + 1)} if "-" in paths else {}
    reading = _read([path for path in paths if path != "-"], given, configuration)
    manifests = _whole(reading)
    scopes = scopes_of(manifests, configuration.cluster_paths(), reading.takings)

    def text_of(path: str) -> bytes:
        return given[path] if path in given else Path(path).read_bytes()

    places, comments = Places(text_of), Comments(text_of, configuration.locked, configuration.settings.today)
    told_of: list[Placed] = []
    looked_at: set[int] = set()
    of_any_kind = {rule.name for rule in configuration.rules_of_objects if KubernetesObject in rule.looks_at}
    own = {rule.name for rule in configuration.own}
    for manifest, finding, of_scopes in judged(manifests, scopes, configuration):
        if finding.rule not in of_any_kind or (finding.rule in own and finding.verdict is not Verdict.NOT_APPLICABLE):
            looked_at.add(id(manifest))
        if finding.verdict in _TOLD_OF:
            wanted = details or finding.verdict is not Verdict.UNKNOWN
            line = places.line(manifest, finding.at, finding.message) if wanted else manifest.line
            placed = _placed(finding, manifest.path, line, finding.suppressed, configuration)
            told_of += _commented(replace(placed, clusters=of_scopes), comments, configuration, manifest.line)
    for problem in reading.problems:
        finding, accepted = told(problem, configuration)
        told_of += _commented(_placed(finding, problem.path, problem.line, accepted, configuration), comments, configuration)
    told_of = [each for each in told_of if _wanted(each, configuration)]
    for path in {each.path for each in told_of if each.finding.verdict is Verdict.FAIL and each.suppressed is None}:
        told_of += [_refused(each, path, ObjectIdentity("", "", ""), configuration) for each in comments.misspelt(path)]
    told_of.sort(key=lambda each: each.order)
    return LintReport(
        findings=tuple(each for each in told_of if each.finding.verdict is not Verdict.UNKNOWN),
        undecided=tuple(each for each in told_of if each.finding.verdict is Verdict.UNKNOWN),
        fail_on=configuration.fail_on,
        files=reading.files,
        documents=reading.documents,
        objects=sum(not each.unread for each in manifests),
        # Under --select other rules may look at them.
        unjudged=_kinds(each for each in manifests if configuration.chosen is None and not each.unread and id(each) not in looked_at),
        clusters={scope.name: sum(not manifests[place].unread for place in scope.members) for scope in scopes},
        skipped={reason: count for reason, count in reading.skipped.items() if count},
    )


def _commented(placed: Placed, comments: Comments, configuration: Configuration, *others: int) -> Iterator[Placed]:
    """The finding, accepted if a comment says so; and a finding of its own for a comment that would and may not."""
    if placed.finding.verdict is not Verdict.FAIL or placed.suppressed is not None:
        yield placed
        return
    said = comments.of(placed.path, placed.finding.rule, placed.line, *others)
    if isinstance(said, Refused):
        yield placed
        yield replace(_refused(said, placed.path, placed.finding.object, configuration), clusters=placed.clusters)
    elif said is not None:
        yield replace(placed, suppressed=replace(said, in_source=True))
    else:
        yield placed


def _refused(said: Refused, path: str, about: ObjectIdentity, configuration: Configuration) -> Placed:
    """The finding that tells of a comment that would accept something and may not."""
    return _placed(of_suppression(about, said.reason, at=""), path, said.line, None, configuration)


def _wanted(placed: Placed, configuration: Configuration) -> bool:
    """Whether a finding's rule is asked for and on where it is."""
    rule = placed.finding.rule
    level = configuration.level(rule, placed.path)
    return level is not Level.DISABLED and (level is None or configuration.chosen is None or rule in configuration.chosen)


def _kinds(manifests: Iterable[Manifest]) -> Counter[str]:
    """How many there are of each kind. A ConfigMap is looked into, for dashboards and Kueue's configuration."""
    return Counter(kind for each in manifests if (kind := str(each.value["kind"])) != "ConfigMap")


def _whole(reading: FilesRead) -> list[Manifest]:
    """The objects that no other file says to be parts of objects, in order; the others are counted."""
    exactly = {path: reason for path, reason in reading.parts if not set(path) & set("*?[")}
    patterns = [(path, reason) for path, reason in reading.parts if path not in exactly]
    found: list[Manifest] = []
    for each in reading.manifests:
        reason = exactly.get(each.path) or next((reason for pattern, reason in patterns if fnmatchcase(each.path, pattern)), None)
        if reason is None:
            found.append(each)
        else:
            reading.skipped[reason] += 1
    return sorted(found, key=lambda each: (each.path, each.line, each.chunk))


def _read(paths: list[str], given: dict[str, bytes], configuration: Configuration) -> FilesRead:
    skipped: Counter[Skipped] = Counter()
    walk = Walk(skipped, configuration.exclude, str(configuration.folder))
    reading = FilesRead()
    for path in walk.files(paths):
        reading.add(read_file(path))
    for path, text in given.items():
        reading.add(read_text(path, text))
    reading.skipped += skipped
    reading.problems += [_unreadable(folder, f"the folder cannot be listed: {reason}") for folder, reason in walk.unreadable.items()]
    return reading


def _unreadable(path: str, reason: str) -> Problem:
    return Problem(InputProblem.UNREADABLE, path, 1, ("", "", "", ""), reason)


def read_file(path: str) -> FilesRead:
    """What one file holds. Never raises for what a file is: what keeps it from being read is a problem of it."""
    try:
        return read_text(path, _bytes_of(path))
    except OSError as error:
        reason = f"it cannot be opened: {error.strerror}"
    except Exception as error:  # noqa: BLE001 -- one file must not stop the others
        last = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"its reader is broken: {type(error).__name__} in {Path(last.filename).name}, line {last.lineno}; report it"
    return FilesRead(problems=[_unreadable(path, reason)], files=1)


def _bytes_of(path: str) -> bytes:
    """What a file holds, up to one byte more than is read. Thousands of small files are read: without a buffer, and without a Path."""
    opened = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        wanted = os.fstat(opened).st_size + 1
        parts: list[bytes] = []
        left = FILE_BYTES + 1
        # A file may have grown, and those of /proc tell no size.
        while left > 0 and (part := os.read(opened, min(wanted, left))):
            parts.append(part)
            left -= len(part)
            wanted = max(wanted - len(part), _PART_BYTES)
        return parts[0] if len(parts) == 1 else b"".join(parts)
    finally:
        os.close(opened)


def _placed(finding: Finding, path: str, line: int, accepted: Suppression | None, configuration: Configuration) -> Placed:
    configured = any(each.suppression is accepted for each in configuration.settings.suppressions)
    suppressed = accepted and replace(accepted, in_source=not configured)
    told_as = replace(finding, page=configuration.page(finding.page)) if configuration.pages else finding
    return Placed(told_as, path, line, suppressed, configuration.binding(finding.rule, finding.severity, path))


WORDS: Final = {"passes": Verdict.PASS, "fails": Verdict.FAIL, "ignores": Verdict.NOT_APPLICABLE}

_NEEDED: Final = ("passes", "fails")


@dataclass(frozen=True)
class Tried:
    """One object of a fixture: where it stands, what it must get, and what it got."""

    rule: str
    path: str
    line: int
    wanted: Verdict
    got: Verdict
    message: str

    @property
    def right(self) -> bool:
        """Whether the rule says of it what its file's name says."""
        return self.got is self.wanted


def tried(rule: OwnRule, folder: Path) -> tuple[list[Tried], list[str]]:
    """Every object of a rule's fixtures, and what is wrong with these: a rule needs one object that passes and one that fails.

    A rule that is off is tried all the same.
    """
    wrong: list[str] = []
    found = [each for word in WORDS for each in _of_word(rule, folder / rule.fixtures, word, wrong)]
    there = {each.wanted for each in found}
    missing = [word for word in _NEEDED if WORDS[word] not in there]
    wrong += [f"{rule.name}: there is no object in {rule.fixtures}/{word}_*.yaml" for word in missing]
    return found, wrong


def _of_word(rule: OwnRule, folder: Path, word: str, wrong: list[str]) -> Iterator[Tried]:
    on = Settings(levels={rule.name: Level.MANDATORY})
    for path in sorted(folder.glob(f"{word}_*.y*ml")):
        reading = read_file(str(path))
        wrong += [f"{each.path}:{each.line}: {each.message}" for each in reading.problems]
        for manifest in reading.manifests:
            findings = [each for each in judge(from_manifest(manifest.value), [rule], on) if each.rule == rule.name]
            verdict = next((each.verdict for each in findings if each.verdict is not Verdict.NOT_APPLICABLE), Verdict.NOT_APPLICABLE)
            message = next((each.message for each in findings if each.verdict is verdict), "")
            yield Tried(rule.name, str(path), manifest.line, WORDS[word], verdict, message)


ENDINGS: Final = (".yaml", ".yml", ".json", ".md", ".markdown")

_PASSED_OVER: Final = frozenset({"node_modules", "__pycache__"})
"""Folders of others' code, beside all whose name begins with a dot."""


@dataclass
class Walk:
    """A walk over files and folders, each file once however many links lead to it.

    `excluded` are patterns of paths relative to `root`, with * for any text, / included; they do not hold for files that are named.
    """

    skipped: Counter[Skipped]
    excluded: Sequence[str] = ()
    root: str = "."
    unreadable: dict[str, str] = field(default_factory=dict[str, str])
    """Folders that could not be listed, each with the reason."""
    _seen: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])

    def files(self, paths: Sequence[str]) -> Iterator[str]:
        """The files, in the order named, those of a folder by name, before those of the folders in it."""
        for path in paths:
            if os.path.isdir(path):  # noqa: PTH112 -- pathlib takes several times as long over thousands of files
                yield from self._below(path)
            elif self._first_sight(os.stat(path)):  # noqa: PTH116 -- likewise
                yield os.path.normpath(path)

    def _below(self, top: str) -> Iterator[str]:
        # A list and no recursion: folders may be nested deeper than Python's calls.
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(folder) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except OSError as error:
                self.unreadable[os.path.normpath(folder)] = error.strerror or type(error).__name__
                continue
            folders = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
            for entry in entries:
                if entry.name.lower().endswith(ENDINGS) and not entry.is_dir(follow_symlinks=False) and self._wanted(entry):
                    yield os.path.normpath(entry.path)
            waiting += [each.path for each in reversed(folders) if not each.name.startswith(".") and each.name not in _PASSED_OVER]

    def _wanted(self, entry: os.DirEntry[str]) -> bool:
        try:
            found = entry.stat()
        except OSError:
            self.skipped[Skipped.LINK] += 1
            return False
        if not stat.S_ISREG(found.st_mode):
            self.skipped[Skipped.LINK if stat.S_ISDIR(found.st_mode) else Skipped.NOT_A_FILE] += 1
            return False
        if self.excluded and self._is_excluded(entry.path):
            self.skipped[Skipped.EXCLUDED] += 1
            return False
        return self._first_sight(found)

    def _is_excluded(self, path: str) -> bool:
        relative = os.path.relpath(path, self.root).replace(os.sep, "/")
        return any(fnmatchcase(relative, pattern) for pattern in self.excluded)

    def _first_sight(self, found: os.stat_result) -> bool:
        known = (found.st_dev, found.st_ino)
        if known in self._seen:
            return False
        self._seen.add(known)
        return True
