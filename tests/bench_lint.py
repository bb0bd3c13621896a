"""`python tests/bench_lint.py`: `flexspot lint` over 5,000 documents, against yaml.CSafeLoader over the same files in the same run; and
rules that compare each object of one kind with each of another, which must take twice as long for twice the objects.

The documents are the YAML of the Go modules that the lab is built from (Kueue, Karpenter, KWOK, JobSet), under new names as often as it
takes, and 500 GPU manifests. Those modules are in Go's module cache once `make tools` has run.
"""

from __future__ import annotations

import math
import re
import statistics
import subprocess
import sys
import tempfile
import time
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

DOCUMENTS = 5_000
GENERATED = 500
ROUNDS = 5
AT_MOST = 1.2
"""Times what CSafeLoader takes; DESIGN's bar."""

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
begun = time.perf_counter()
for text in files:
    try:
        for _ in yaml.load_all(text, Loader=yaml.CSafeLoader):
            pass
    except Exception:
        pass
print(time.perf_counter() - begun)
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


def documents_in(text: str) -> int:
    """How many documents CSafeLoader takes from a text; none from what it refuses."""
    try:
        return sum(document is not None for document in yaml.load_all(text, Loader=yaml.CSafeLoader))
    except (yaml.YAMLError, ValueError):
        return 0


def write_corpus(target: Path) -> tuple[int, int]:
    """Writes the files to be linted; how many documents and how many bytes they hold."""
    texts = [path.read_text(encoding="utf-8") for path in module_yaml()]
    counts = [documents_in(text) for text in texts]
    documents = size = copy = 0
    while documents < DOCUMENTS - GENERATED:
        for number, text in enumerate(texts):
            renamed = re.sub(r"^(  name: [A-Za-z0-9.-]+)$", rf"\1-copy-{copy}", text, flags=re.MULTILINE)
            (target / f"module-{number}-copy-{copy}.yaml").write_text(renamed, encoding="utf-8")
            documents += counts[number]
            size += len(renamed)
        copy += 1
    for number in range(GENERATED):
        template = NODE_POOL if number % 10 == 0 else GPU_MANIFEST
        filled = template.format(
            number=number, team=number % 20, parallelism=1 + number % 8, digest=f"{number:064x}", cores=4, memory=16, gpus=1 << number % 4
        )
        (target / f"gpu-{number}.yaml").write_text(filled, encoding="utf-8")
        size += len(filled)
    return documents + GENERATED, size


def parse_seconds(listing: Path) -> float:
    """CSafeLoader alone, its start not counted."""
    command = [sys.executable, "-c", PARSE_ALONE, str(listing)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def lint_seconds(corpus: Path) -> float:
    """The whole command, from its start to its end."""
    begun = time.perf_counter()
    ended = subprocess.run([CHECKOUT / ".venv" / "bin" / "flexspot", "lint", corpus, "--format", "json"], check=False, capture_output=True)
    if ended.returncode not in {0, 1}:
        raise RuntimeError(ended.stderr.decode())
    return time.perf_counter() - begun


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
        begun = time.process_time()
        judge_all(sources, all_rules(), DEFAULTS)
        taken.append(time.process_time() - begun)
    return min(taken)


def crossed() -> dict[str, list[tuple[int, float]]]:
    """Numbers of objects and seconds, for so many of each, twice and four times as many."""
    return {name: [(count * times, judged_seconds(make(count * times))) for times in (1, 2, 4)] for name, (make, count) in CROSSED.items()}


def main() -> None:
    """Measures and prints a table; fails when the command takes longer than the bar."""
    grown = Table("of each", "seconds", "times", title="objects compared with one another", title_justify="left", box=None)
    steepest = 0.0
    for name, measured in crossed().items():
        for place, (count, seconds) in enumerate(measured):
            growth = seconds / measured[place - 1][1] if place else 1.0
            grown.add_row(f"{count} {name}", f"{seconds:.2f}", f"{growth:.2f}")
        # Over both doublings: one alone is off by a tenth on a busy machine.
        steepest = max(steepest, math.sqrt(measured[-1][1] / measured[0][1]))
    Console().print(grown)
    with tempfile.TemporaryDirectory() as root:
        corpus, listing = Path(root) / "corpus", Path(root) / "files"
        corpus.mkdir()
        documents, size = write_corpus(corpus)
        listing.write_text("\n".join(map(str, sorted(corpus.iterdir()))), encoding="utf-8")
        rounds = [(parse_seconds(listing), lint_seconds(corpus)) for _ in range(ROUNDS)]
    ratio = statistics.median(lint / parse for parse, lint in rounds)
    title = f"lint of {documents} documents ({size / 1e6:.0f} MB), median of {ROUNDS}"
    table = Table("what", "seconds", "ratio", title=title, title_justify="left", box=None)
    table.add_row("yaml.CSafeLoader, parsing alone", f"{statistics.median(parse for parse, _ in rounds):.2f}", "1.00")
    table.add_row("flexspot lint, the whole command", f"{statistics.median(lint for _, lint in rounds):.2f}", f"{ratio:.2f}")
    Console().print(table)
    if steepest > PER_DOUBLING:
        sys.exit(f"twice the objects take {steepest:.2f} times as long; at most {PER_DOUBLING} is asked for")
    if ratio > AT_MOST:
        sys.exit(f"flexspot lint takes {ratio:.2f} times what parsing takes; at most {AT_MOST} is asked for")


if __name__ == "__main__":
    main()
