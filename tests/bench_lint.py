"""`python tests/bench_lint.py`: `flexspot lint` over 5,000 documents, against yaml.CSafeLoader over the same files in the same run.

The documents are the YAML of the Go modules that the lab is built from (Kueue, Karpenter, KWOK, JobSet), under new names as often as it
takes, and 500 GPU manifests. Those modules are in Go's module cache once `make tools` has run.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table

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


def main() -> None:
    """Measures and prints a table; fails when the command takes longer than the bar."""
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
    if ratio > AT_MOST:
        sys.exit(f"flexspot lint takes {ratio:.2f} times what parsing takes; at most {AT_MOST} is asked for")


if __name__ == "__main__":
    main()
