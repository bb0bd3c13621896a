"""The defects of the documents that the project began with, and who catches each. Not a test; as a program it writes the guide's table.

Each has manifests under seed_defects in which rules must find it, or a component that cannot hold it, or both.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from seed_defect_manifests import FOLDER, marked

if TYPE_CHECKING:
    from collections.abc import Sequence

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "seed-defects.md"


@dataclass(frozen=True)
class SeedDefect:
    """`wrong` is what goes wrong, `component` what makes it impossible where no manifest shows it."""

    number: int
    wrong: str
    component: str = ""

    def __str__(self) -> str:
        return f"G{self.number}-{self.wrong}"

    @property
    def manifests(self) -> Sequence[Path]:
        return sorted(FOLDER.glob(f"g{self.number:02}_*.yaml"))

    @property
    def rules(self) -> Sequence[str]:
        return sorted({rule for path in self.manifests for _, rule in marked(path)})


SEED_DEFECTS = (
    SeedDefect(1, "A ClusterQueue lists quotas in another order than the resources it covers: the API server refuses it"),
    SeedDefect(2, "A ClusterQueue without a namespaceSelector admits nothing, ever"),
    SeedDefect(3, "A node class names an image family alone, and a NodePool a class that nobody wrote: no node starts"),
    SeedDefect(4, "A flavor selects a label that nodes get after they boot: from zero nodes, none is ever made"),
    SeedDefect(5, "A flavor is of a GPU, or of a capacity type, that no pool makes: admitted work waits for ever"),
    SeedDefect(6, "Neither the Job nor its flavor tolerates the taint of the pool that they lead to"),
    SeedDefect(7, "The pool's cpu and memory end it long before its GPU limit does"),
    SeedDefect(8, "WhenEmpty does not keep a training node: it expires after 30 days, whatever runs on it"),
    SeedDefect(9, "A terabyte that nobody formats or mounts is paid for on every node"),
    SeedDefect(10, "A threshold meant to say who may borrow says who may be preempted"),
    SeedDefect(11, "Borrowing limits and weights without anybody to share with, and with fair sharing off"),
    SeedDefect(12, "An API of Kueue that is deprecated, and its fields under the new one, which refuses them"),
    SeedDefect(
        13,
        "Kueue 0.9.1: another API, other behaviour, an image that moved",
        "The KueueController installs the release that its queues are for",
    ),
    SeedDefect(14, "A ResourceQuota on limits of GPUs is taken and never counted"),
    SeedDefect(15, "A LimitRange gives every container of the namespace a GPU, sidecars included"),
    SeedDefect(16, "An alert takes the maximum of a histogram's bare name, under which there is no series"),
    SeedDefect(17, "An alert asks kube-state-metrics for labels that it was not told to show"),
    SeedDefect(18, "An alert joins DCGM's series by a label that they do not have, or groups by the exporter's namespace"),
    SeedDefect(19, "A cost figure counts containers where it means GPUs"),
    SeedDefect(20, "Two programs drain the same nodes, and nobody tells Karpenter of interruptions"),
    SeedDefect(21, "A Job that may fail 0 times ends with the first interruption; OnFailure forbids the policy that would help"),
    SeedDefect(
        22,
        "Of two -n flags kubectl takes the last; a high priority is taken for a promise that no node goes away",
        "No command of the guides names two namespaces; the class of the highest priority is on capacity that stays, with a budget",
    ),
    SeedDefect(
        23,
        "A machine with one GPU is asked for two, and a node count that holds for each zone is taken for the whole",
        "GPU pools have a ceiling for all zones together",
    ),
    SeedDefect(24, "A Job tolerates the taint of Spot nodes, and nothing leads it there"),
    SeedDefect(25, "25 seconds of grace where the cloud gives 15"),
    SeedDefect(
        26,
        "Flex-start alone is taken to start all pods of a job at once",
        "Queued capacity, which does, is reached through a queue's provisioning check alone",
    ),
    SeedDefect(27, "Node auto-provisioning without a limit for the GPU type makes no GPU node"),
    SeedDefect(28, "maxParallelism is no field of a Job"),
    SeedDefect(29, "A toleration of a taint that the chosen capacity does not have"),
    SeedDefect(30, "A PodDisruptionBudget does not delay the end of a flex-start node"),
    SeedDefect(31, "One ReadWriteOnce claim for pods on several nodes: all but the first wait"),
    SeedDefect(32, "An image by the tag latest, a priority below every default pod's, and YAML without its indentation"),
    SeedDefect(
        33,
        "An interrupted trainer that exits with 0 makes its Job complete with the work unfinished",
        "The runtime ends an interrupted run with 143, never with 0",
    ),
    SeedDefect(
        34,
        "15 seconds hold unless the pool says more; a handler in Python may hear of them when they are over",
        "The runtime hears the warning on a thread of its own",
    ),
)


def table() -> str:
    """The table of the guide."""
    rows = [f"| G{each.number} | {each.wrong} | {_caught_by(each)} |" for each in SEED_DEFECTS]
    return "\n".join(["| | what goes wrong | who catches it |", "|---|---|---|", *rows]) + "\n"


def _caught_by(defect: SeedDefect) -> str:
    rules = ", ".join(f"[`{rule}`](../rules/{rule}.md)" for rule in defect.rules)
    return ". ".join(each for each in (rules, defect.component) if each)


def main() -> None:
    """Writes the table into the guide, between what the guide says of it and the next heading."""
    text = GUIDE.read_text(encoding="utf-8")
    begin = text.index("| | what goes wrong")
    GUIDE.write_text(text[:begin] + table() + text[text.index("\n## ", begin) :], encoding="utf-8")


if __name__ == "__main__":
    main()
