"""`python tests/bench_lint.py`: how much processor time `flexspot lint` takes, as ratios within one run.

Two sets of files, each against yaml.CSafeLoader over the same files: one of mostly CustomResourceDefinitions, one of
mostly work. Each again at four times its size, which must take four times as long. Rules that compare each object of
one kind with each of another, which must take twice as long for twice the objects. And the processor time of one file.

The sets are the YAML of the Go modules that the lab is built from (Kueue, Karpenter, KWOK, JobSet), under new names as
often as it takes, and GPU manifests. Those modules are in Go's module cache once `make tools` has run.
"""

from __future__ import annotations

import gc
import math
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from policies.core import judge_all
from policies.inventory.reading.source import from_manifest
from policies.judging import DEFAULTS
from policies.rules import all_rules

CHECKOUT = Path(__file__).resolve().parents[1]

ROUNDS = 3
TIMES = 4
"""How much larger the larger set of each is."""

AT_MOST_GROWN = 1.25
"""The most that it may take beyond so many times as long: a busy machine is off by a tenth."""

ONE_FILE_SECONDS = 0.3


@dataclass(frozen=True)
class Corpus:
    """What a set of files is made of. `at_most` is the bar: times what CSafeLoader takes for it."""

    name: str
    size_mb: float
    definitions: bool
    generated: int
    at_most: float


CORPORA = (Corpus("mostly definitions", 32.0, True, 500, 1.2), Corpus("mostly work", 7.5, False, 1_000, 1.7))

# Module path: the family of lab/tools whose module files pin it.
MODULES = {
    "sigs.k8s.io/kueue": "kueue",
    "sigs.k8s.io/karpenter": "karpenter",
    "sigs.k8s.io/kwok": "kwok",
    "sigs.k8s.io/jobset": "kueue",
}

PARSE_ALONE = """
import sys, time, yaml
files = [open(path, "rb").read() for path in open(sys.argv[1]).read().splitlines()]
begun = time.process_time()
for text in files:
    try:
        for _ in yaml.load_all(text, Loader=yaml.CSafeLoader):
            pass
    except Exception:
        pass
print(time.process_time() - begun)
"""

GPU_MANIFEST = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: train-{number}
  namespace: team-{team}
  labels: {{kueue.x-k8s.io/queue-name: team-{team}}}
spec:
  parallelism: {parallelism}
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {{karpenter.sh/nodepool: pool-{team}}}
      tolerations: [{{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}}]
      containers:
        - name: train
          image: registry.example/train@sha256:{digest}
          command: [python, -m, train, --resume]
          resources:
            requests: {{cpu: "{cores}", memory: {memory}Gi}}
            limits: {{nvidia.com/gpu: {gpus}}}
          volumeMounts: [{{name: checkpoints, mountPath: /checkpoints}}]
      volumes: [{{name: checkpoints, persistentVolumeClaim: {{claimName: checkpoints-{number}}}}}]
"""

NODE_POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: pool-{number}}}
spec:
  limits: {{nvidia.com/gpu: {gpus}}}
  template:
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}}
      taints: [{{key: nvidia.com/gpu, value: present, effect: NoSchedule}}]
      requirements:
        - {{key: karpenter.k8s.aws/instance-family, operator: In, values: [g6, g6e]}}
        - {{key: karpenter.sh/capacity-type, operator: In, values: [spot]}}
"""


def module_folder(module: str, family: str) -> Path:
    """Where Go keeps the pinned version of a module, which it fetches if it has to."""
    folder = CHECKOUT / "lab" / "tools" / family
    command = ["go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module]
    subprocess.run(["go", "mod", "download", module], cwd=folder, check=True)  # noqa: S607 -- go is the user's own
    return Path(subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip())


def module_yaml() -> list[Path]:
    """The YAML files of the pinned modules."""
    folders = [module_folder(module, family) for module, family in MODULES.items()]
    return [path for folder in folders for path in sorted(folder.rglob("*")) if path.suffix in {".yaml", ".yml"} and path.is_file()]


def write_corpus(corpus: Corpus, target: Path, times: int = 1) -> tuple[int, int]:
    """Writes the files to be linted; how many there are and how many bytes they hold."""
    texts = [path.read_text(encoding="utf-8") for path in module_yaml()]
    texts = [text for text in texts if corpus.definitions or "kind: CustomResourceDefinition" not in text]
    files = size = 0
    for number in range(corpus.generated * times):
        template = NODE_POOL if number % 10 == 0 else GPU_MANIFEST
        filled = template.format(
            number=number, team=number % 20, parallelism=1 + number % 8, digest=f"{number:064x}", cores=4, memory=16, gpus=1 << number % 4
        )
        (target / f"gpu-{number}.yaml").write_text(filled, encoding="utf-8")
        files, size = files + 1, size + len(filled)
    copy = 0
    while True:
        for number, text in enumerate(texts):
            if size >= corpus.size_mb * 1e6 * times:
                return files, size
            renamed = re.sub(r"^(  name: [A-Za-z0-9.-]+)$", rf"\1-copy-{copy}", text, flags=re.MULTILINE)
            (target / f"module-{number}-copy-{copy}.yaml").write_text(renamed, encoding="utf-8")
            files, size = files + 1, size + len(renamed)
        copy += 1


def parse_seconds(listing: Path) -> float:
    """The processor time of CSafeLoader alone, its start not counted."""
    command = [sys.executable, "-c", PARSE_ALONE, str(listing)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def linted(path: Path) -> None:
    """Runs the whole command."""
    ended = subprocess.run([CHECKOUT / ".venv" / "bin" / "flexspot", "lint", path, "--format", "json"], check=False, capture_output=True)
    if ended.returncode not in {0, 1}:
        raise RuntimeError(ended.stderr.decode())


def lint_seconds(path: Path) -> float:
    """The processor time of the whole command, its start and all its processes counted."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    linted(path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def one_file_seconds() -> float:
    """Of one file: the least of several."""
    with tempfile.TemporaryDirectory() as root:
        path = Path(root) / "pool.yaml"
        path.write_text(NODE_POOL.format(number=1, gpus=8), encoding="utf-8")
        return min(lint_seconds(path) for _ in range(ROUNDS))


@dataclass(frozen=True)
class Measured:
    """A set of files: how many, how large, the seconds of CSafeLoader and of the command, and their ratio: medians of several."""

    files: int
    size: int
    parse: float
    lint: float
    ratio: float


def measured(corpus: Corpus, times: int) -> Measured:
    """Both over one set, in turns."""
    with tempfile.TemporaryDirectory() as root:
        folder, listing = Path(root) / "corpus", Path(root) / "files"
        folder.mkdir()
        files, size = write_corpus(corpus, folder, times)
        listing.write_text("\n".join(map(str, sorted(folder.iterdir()))), encoding="utf-8")
        rounds = [(parse_seconds(listing), lint_seconds(folder)) for _ in range(ROUNDS if times == 1 else 1)]
    medians = (statistics.median(parse for parse, _ in rounds), statistics.median(lint for _, lint in rounds))
    return Measured(files, size, *medians, statistics.median(lint / parse for parse, lint in rounds))


PER_DOUBLING = 2.2
"""The most that twice the objects may take."""


def budgets(count: int) -> list[dict[str, Any]]:
    """So many PodDisruptionBudgets, each of which selects a Deployment of its own by an expression."""
    made: list[dict[str, Any]] = []
    for number in range(count):
        labels = {"app": f"app-{number}"}
        selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": [labels["app"]]}]}
        pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]}}
        deployment = {"replicas": 2, "selector": {"matchLabels": labels}, "template": pod}
        for api, kind, spec in (
            ("policy/v1", "PodDisruptionBudget", {"minAvailable": 1, "selector": selector}),
            ("apps/v1", "Deployment", deployment),
        ):
            made.append({"apiVersion": api, "kind": kind, "metadata": {"name": f"web-{number}", "namespace": "web"}, "spec": spec})
    return made


def pools_and_jobs(count: int) -> list[dict[str, Any]]:
    """So many NodePools with a taint each, and as many Jobs, each of which tolerates one and selects none."""
    made: list[dict[str, Any]] = []
    for number in range(count):
        pool = yaml.safe_load(NODE_POOL.format(number=number, gpus=8))
        pool["spec"]["template"]["spec"]["taints"].append({"key": f"team-{number}", "effect": "NoSchedule"})
        filled = GPU_MANIFEST.format(number=number, team=0, parallelism=1, digest=f"{number:064x}", cores=4, memory=16, gpus=1)
        job = yaml.safe_load(filled)
        pod = job["spec"]["template"]["spec"]
        pod["tolerations"].append({"key": f"team-{number}", "operator": "Exists"})
        del pod["nodeSelector"], job["metadata"]["labels"]
        made += [pool, job]
    return made


CROSSED = {"PodDisruptionBudgets x Deployments": (budgets, 500), "NodePools x Jobs without a selector": (pools_and_jobs, 100)}
"""What is compared, and the number of each to begin with."""


def judged_seconds(made: list[dict[str, Any]]) -> float:
    """Processor time of all rules over objects that are read already: the least of three."""
    sources = [from_manifest(each) for each in made]
    taken: list[float] = []
    for _ in range(3):
        # The command collects no garbage either.
        gc.disable()
        begun = time.process_time()
        judge_all(sources, all_rules(), DEFAULTS)
        taken.append(time.process_time() - begun)
        gc.enable()
    return min(taken)


def crossed() -> dict[str, list[tuple[int, float]]]:
    """Numbers of objects and seconds, for so many of each, twice and four times as many."""
    return {name: [(count * times, judged_seconds(make(count * times))) for times in (1, 2, 4)] for name, (make, count) in CROSSED.items()}


def steepest_growth() -> float:
    """Prints what twice and four times the objects take; the most that one doubling takes."""
    grown = Table("of each", "seconds", "times", title="objects compared with one another", title_justify="left", box=None)
    steepest = 0.0
    for name, sizes in crossed().items():
        for place, (number, seconds) in enumerate(sizes):
            growth = seconds / sizes[place - 1][1] if place else 1.0
            grown.add_row(f"{number} {name}", f"{seconds:.2f}", f"{growth:.2f}")
        # Over both doublings: one alone is off by a tenth on a busy machine.
        steepest = max(steepest, math.sqrt(sizes[-1][1] / sizes[0][1]))
    Console().print(grown)
    return steepest


def main() -> None:
    """Measures and prints tables; fails when anything takes longer than its bar."""
    problems: list[str] = []
    if (steepest := steepest_growth()) > PER_DOUBLING:
        problems.append(f"twice the objects take {steepest:.2f} times as long; at most {PER_DOUBLING} is asked for")
    table = Table("files", "MB", "CSafeLoader", "lint", "ratio", "at most", title="files", title_justify="left", box=None)
    for corpus in CORPORA:
        small, large = measured(corpus, 1), measured(corpus, TIMES)
        for each in (small, large):
            cells = (f"{each.size / 1e6:.1f}", f"{each.parse:.2f}", f"{each.lint:.2f}", f"{each.ratio:.2f}", f"{corpus.at_most}")
            table.add_row(f"{each.files} {corpus.name}", *cells)
        if small.ratio > corpus.at_most:
            problems.append(
                f"lint of {corpus.name} takes {small.ratio:.2f} times what parsing takes; at most {corpus.at_most} is asked for"
            )
        # Against parsing, which grows linearly: the machine may be busier now than before.
        if large.ratio / small.ratio > AT_MOST_GROWN:
            problems.append(f"lint of {TIMES} times {corpus.name} takes {large.ratio / small.ratio:.2f} times as long beyond that")
    seconds = one_file_seconds()
    table.add_row("one file, processor time", "", "", f"{seconds:.2f}", "", f"{ONE_FILE_SECONDS}")
    Console().print(table)
    if seconds > ONE_FILE_SECONDS:
        problems.append(f"lint of one file takes {seconds:.2f} s of processor time; at most {ONE_FILE_SECONDS} is asked for")
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
