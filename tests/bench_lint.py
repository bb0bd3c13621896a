"""`python tests/bench_lint.py`: CPU time of `flexspot lint`, relative to yaml.CSafeLoader's for the same files, and of one file.

There are two sets of files: one mostly of CustomResourceDefinitions, one mostly of work. Each contains the YAML of the Go modules that the
lab is built from (Kueue, Karpenter, KWOK, JobSet), copied under new names until the set is large enough, and a platform with its jobs. The
modules are in Go's module cache once `make tools` has run.
"""

from __future__ import annotations

import itertools
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import bench_policies
import yaml
from rich.console import Console
from rich.table import Table

CHECKOUT = Path(__file__).resolve().parents[1]

ROUNDS = 3
ONE_FILE_SECONDS = 0.3


@dataclass(frozen=True)
class Corpus:
    """A set of files."""

    name: str
    size_mb: float
    definitions: bool
    at_most: float
    """Limit of the linter's time, as a multiple of CSafeLoader's time."""


CORPORA = (Corpus("mostly definitions", 32.0, True, 1.2), Corpus("mostly work", 7.5, False, 2.0))

# Module path: the family of flexspot/lab/tools whose module files pin it.
MODULES = {
    "sigs.k8s.io/kueue": "kueue",
    "sigs.k8s.io/karpenter": "karpenter",
    "sigs.k8s.io/kwok": "kwok",
    "sigs.k8s.io/jobset": "kueue",
}


def module_folder(module: str, family: str) -> Path:
    """Return the folder of the pinned version of a module, which Go downloads if it is missing."""
    folder = CHECKOUT / "lab" / "flexspot" / "lab" / "tools" / family
    command = ["go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module]
    subprocess.run(["go", "mod", "download", module], cwd=folder, check=True)  # noqa: S607 -- go is the user's own
    return Path(subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip())


def write_corpus(corpus: Corpus, target: Path) -> None:
    """Write the files to be linted."""
    for number, (_, _, inputs) in enumerate(bench_policies.resources()):
        (target / f"platform-{number}.yaml").write_text(yaml.safe_dump(inputs), encoding="utf-8")
    folders = [module_folder(module, family) for module, family in MODULES.items()]
    paths = [path for folder in folders for path in sorted(folder.rglob("*")) if path.suffix in {".yaml", ".yml"} and path.is_file()]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    texts = [text for text in texts if corpus.definitions or "kind: CustomResourceDefinition" not in text]
    size = 0
    for number, text in enumerate(itertools.cycle(texts)):
        renamed = re.sub(r"^(  name: [A-Za-z0-9.-]+)$", rf"\1-copy-{number}", text, flags=re.MULTILINE)
        (target / f"module-{number}.yaml").write_text(renamed, encoding="utf-8")
        size += len(renamed)
        if size >= corpus.size_mb * 1e6:
            return


def parse_seconds(folder: Path) -> float:
    """Return the CPU time of CSafeLoader alone."""
    texts = [path.read_bytes() for path in folder.iterdir()]
    start = time.process_time()
    for text in texts:
        with suppress(yaml.YAMLError, ValueError):
            list(yaml.load_all(text, Loader=yaml.CSafeLoader))
    return time.process_time() - start


def lint_seconds(path: Path) -> float:
    """Return the CPU time of the whole command, with its start and all its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run([CHECKOUT / ".venv" / "bin" / "flexspot", "lint", path, "--format", "json"], check=False, capture_output=True)
    if ended.returncode not in {0, 1}:
        raise RuntimeError(ended.stderr.decode())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a table. Fails if anything takes longer than its limit."""
    table = Table("files", "number", "CSafeLoader", "lint", "ratio", "at most", title="seconds of CPU", title_justify="left", box=None)
    slow: list[str] = []
    for corpus in CORPORA:
        with tempfile.TemporaryDirectory() as root:
            write_corpus(corpus, Path(root))
            rounds = [(parse_seconds(Path(root)), lint_seconds(Path(root))) for _ in range(ROUNDS)]
            number = len(list(Path(root).iterdir()))
        parse, lint = (statistics.median(column) for column in zip(*rounds, strict=True))
        ratio = statistics.median(lint / parse for parse, lint in rounds)
        table.add_row(corpus.name, f"{number}", f"{parse:.2f}", f"{lint:.2f}", f"{ratio:.2f}", f"{corpus.at_most}")
        slow += [corpus.name] if ratio > corpus.at_most else []
    with tempfile.TemporaryDirectory() as root:
        path = Path(root) / "one.yaml"
        path.write_text(yaml.safe_dump(bench_policies.resources()[0][2]), encoding="utf-8")
        seconds = min(lint_seconds(path) for _ in range(ROUNDS))
    table.add_row("one file", "1", "", f"{seconds:.2f}", "", f"{ONE_FILE_SECONDS}")
    slow += ["one file"] if seconds > ONE_FILE_SECONDS else []
    Console().print(table)
    if slow:
        sys.exit(f"lint takes longer than it may: {', '.join(slow)}")


if __name__ == "__main__":
    main()
