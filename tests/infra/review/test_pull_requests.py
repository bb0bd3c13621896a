"""Pull requests to a project that `flexspot init` wrote, reviewed through the real engine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import command_line
import pytest
from git_repositories import git
from new_projects import GKE, init

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.engine

OWN_POOL = """
import pulumi_gcp as gcp

taints = [
    {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"},
    {"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NO_SCHEDULE"},
]
gcp.container.NodePool(
    "own-gpus",
    cluster="projects/acme-ai-dev/locations/us-central1/clusters/ours",
    location="us-central1",
    autoscaling={"total_max_node_count": 2, "total_min_node_count": 0},
    node_config={
        "machine_type": "g2-standard-8",
        "spot": True,
        "guest_accelerators": [{"type": "nvidia-l4", "count": 1}],
        "taints": taints,
        "service_account": "nodes@acme-ai-dev.iam.gserviceaccount.com",
        "oauth_scopes": ["https://www.googleapis.com/auth/cloud-platform"],
        "resource_labels": {"owner": "ml-platform"},
    },
)
"""


class Project:
    """A repository whose branch `main` has a project for GKE, with one own pool in addition to the platform."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        init(folder, *GKE)
        # Two stacks test the same as three.
        (folder / "stacks" / "Pulumi.prod.yaml").unlink()
        program = folder / "__main__.py"
        program.write_text(program.read_text() + OWN_POOL)
        self.git("init", "-q", "-b", "main")
        # The link to the environment of these tests is not a file of the project.
        (folder / ".git" / "info" / "exclude").write_text(".venv\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "the platform")

    def git(self, *arguments: str) -> str:
        return git(self.folder, *arguments)

    def pull_request(self, name: str, path: str, change: Callable[[str], str]) -> str:
        """Create a branch from main with one changed file, and return its name."""
        self.git("checkout", "-q", "-b", name, "main")
        written = (self.folder / path).read_text()
        assert change(written) != written, "the change changes nothing"
        (self.folder / path).write_text(change(written))
        self.git("commit", "-q", "-a", "-m", name)
        self.git("checkout", "-q", "main")
        return name

    def review(self, branch: str, form: str = "json") -> tuple[int, str, str]:
        """Return the exit code, the output and the progress messages."""
        done = command_line.flexspot("review", "--base", "main", "--head", branch, "--format", form, folder=self.folder)
        return done.returncode, done.stdout, done.stderr

    def reviewed(self, branch: str) -> tuple[int, dict[str, Any]]:
        code, report, progress = self.review(branch)
        assert report, progress
        return code, json.loads(report)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("reviewed") / "acme")


DEV = "stacks/Pulumi.dev.yaml"


def test_a_changed_quota_affects_only_its_stack(project: Project) -> None:
    """The pool is renamed, too: it is a new pool, and the deletion of the old one is reported."""
    changes = {"max_nodes: 4": "max_nodes: 3", "l4-spot: 4": "l4-spot: 3", "l4-spot": "l4-cheap"}

    def smaller(text: str) -> str:
        for before, after in changes.items():
            text = text.replace(before, after)
        return text

    code, report = project.reviewed(project.pull_request("quota", DEV, smaller))

    assert code == 0, report
    assert report["unchanged"] == ["local"]
    (stack,) = report["stacks"]
    becomes = {each["name"]: each["becomes"] for each in stack["resources"] if each["type"] == "gcp:container/nodePool:NodePool"}
    assert becomes == {"l4-spot-node-pool": "deleted", "l4-cheap-node-pool": "created"}
    assert any(each["type"].endswith("ClusterQueue") and each["becomes"] == "changed" for each in stack["resources"])
    assert any("l4-spot" in each and "is deleted" in each for each in stack["losses"])
    assert float(stack["cost"]["difference"]["worst_case_usd"]) < 0
    assert stack["verdicts"] == {"new": [], "fixed": []}


def test_an_expensive_pool_is_refused_by_the_budget_and_its_cost_is_reported(project: Project) -> None:
    more = "      - {name: h100, machine: a3-highgpu-8g, capacity_type: spot, max_nodes: 40, serves: [training]}\n"
    code, report = project.reviewed(project.pull_request("dear", DEV, lambda text: text.replace("    pools:\n", "    pools:\n" + more)))

    assert code == 1
    (stack,) = report["stacks"]
    assert "budget-exceeded" in {each["policy"] for each in stack["verdicts"]["new"]}
    assert float(stack["cost"]["difference"]["worst_case_usd"]) > 100_000
    assert {each["name"] for each in stack["resources"] if each["becomes"] == "created"} >= {"h100-node-pool"}


@pytest.mark.nightly(tested_by="test_an_expensive_pool_is_refused_by_the_budget_and_its_cost_is_reported")
def test_a_removed_taint_is_a_new_verdict_and_refuses_every_stack_of_the_program(project: Project) -> None:
    branch = project.pull_request("untainted", "__main__.py", lambda text: text.replace('        "taints": taints,\n', ""))
    code, report = project.reviewed(branch)

    assert code == 1
    assert set(report["refused"]) >= {"dev", "local"}
    for stack in report["stacks"]:
        found = {(each["policy"], each["urn"].rpartition("::")[2]) for each in stack["verdicts"]["new"] if each["mandatory"]}
        assert found == {("gpu-pool-without-taint", "own-gpus"), ("spot-pool-without-taint", "own-gpus")}
        assert [(each["name"], each["becomes"]) for each in stack["resources"]] == [("own-gpus", "changed")]


def test_a_comment_changes_nothing_and_nothing_is_previewed_for_it(project: Project) -> None:
    branch = project.pull_request("comment", DEV, lambda text: f"# For whom: research.\n{text}")
    code, report, progress = project.review(branch)

    assert code == 0
    assert json.loads(report)["stacks"] == []
    assert "0 of 2 stacks may change" in progress


HOSTILE = """
    owner: '</code><img src=x onerror=alert(1)> @everyone'
    admission: {rules_file: ../../../../../../../../../../etc/passwd}
    budget: {monthly_usd: 1e999999999}
"""


@pytest.mark.nightly(tested_by="test_names_and_messages_stay_text_in_the_comment")
def test_a_hostile_stack_file_runs_nothing_reads_nothing_and_marks_nothing_up(project: Project) -> None:
    def attacked(text: str) -> str:
        kept = [line for line in text.splitlines() if not line.startswith(("    owner:", "    admission:", "    budget:"))]
        return "\n".join(kept) + HOSTILE

    branch = project.pull_request("attack", DEV, attacked)
    project.git("checkout", "-q", branch)
    local = project.folder / "stacks" / "Pulumi.local.yaml"
    local.write_text(local.read_text().replace("owner: ml-platform", "owner: !!python/object/apply:os.system ['touch hacked']"))
    project.git("commit", "-q", "-a", "-m", "another")
    project.git("checkout", "-q", "main")
    code, comment, progress = project.review(branch, "markdown")

    assert code == 1, progress
    assert comment.count("⛔ refused:") >= 2, comment
    assert "owner" in comment
    assert "root:" not in comment + progress, "a file of the machine"
    assert "<img" not in comment
    assert "@everyone" not in comment
    assert not (project.folder / "hacked").exists()
