"""Malicious stack files, manifests and plans: no code runs, nothing outside is read, and no terminal or comment executes them.

SECURITY.md says what each may do; these tests test its statements.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from command_line import CHECKOUT, flexspot
from test_cost_commands import plan_file

if TYPE_CHECKING:
    from pathlib import Path
    from subprocess import CompletedProcess

pytestmark = pytest.mark.slow

SECONDS = 60
"""Most seconds of a command on a file. Each of these files once took forever, or all memory."""

MARKUP = "x|[y](javascript:alert(1))<script>alert(1)</script>`\n# heading @everyone"
ESCAPES = "\x1b[2J\x1b]0;title\x07\u202egnp.exe"
"""Clears a terminal, changes its title, and reverses text."""


@dataclass(frozen=True)
class Project:
    """A project with one stack. A test changes the stack's file as its author would."""

    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "stacks" / "Pulumi.dev-gke.yaml"

    @property
    def touched(self) -> Path:
        """The file that executed code would create."""
        return self.folder / "touched"

    def write(self, before: str, after: str) -> None:
        text = self.file.read_text()
        assert before in text
        self.file.write_text(text.replace(before, after, 1))

    def flexspot(self, *arguments: str | Path) -> CompletedProcess[str]:
        return flexspot(*arguments, folder=self.folder, timeout=SECONDS)

    def refused(self, *messages: str) -> str:
        """Return the output of the check of the stack. It must contain `messages`, with exit code 2."""
        done = self.flexspot("settings", "check", "-s", "dev-gke")
        assert done.returncode == 2, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        assert [each for each in messages if each not in done.stderr] == []
        return done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "stacks").mkdir()
    shutil.copy(CHECKOUT / "stacks" / "Pulumi.dev-gke.yaml", tmp_path / "stacks")
    (tmp_path / "Pulumi.yaml").write_text("name: own\nruntime: python\nstackConfigDir: stacks\n")
    return Project(tmp_path)


def bomb(indent: str) -> str:
    """Return ten lines that contain three billion values."""
    levels = [f"{indent}level0: &level0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    levels += [f"{indent}level{number}: &level{number} [{', '.join([f'*level{number - 1}'] * 9)}]" for number in range(1, 10)]
    return "\n".join(levels) + "\n"


def test_a_stack_file_runs_no_code(project: Project) -> None:
    project.write("    owner:", f'    extra: !!python/object/apply:os.system ["touch {project.touched}"]\n    owner:')

    project.refused("python/object/apply")
    assert not project.touched.exists()


@pytest.mark.parametrize("below", ["    owner:", "    pools:"])
def test_nested_aliases_end_a_check_at_once(below: str, project: Project) -> None:
    project.write(below, bomb("    ") + below)

    project.refused("brings the settings to over 100,000 values")


@pytest.mark.parametrize(
    "number,message",
    [
        ("9" * 5000, "contains an unreadable value"),
        (".inf", "is not a finite number"),
        (".nan", "is not a finite number"),
        ("1e400", "should be a whole number"),
    ],
    ids=["too long to read", "infinite", "no number", "beyond floats"],
)
def test_unreadable_and_infinite_numbers_are_refused(number: str, message: str, project: Project) -> None:
    project.write("max_nodes: 3", f"max_nodes: {number}")

    project.refused(message)


@pytest.mark.parametrize("written", [MARKUP, ESCAPES, "$(touch touched)", "x" * 1_000_000])
def test_hostile_names_are_refused_without_effect(written: str, project: Project) -> None:
    project.write("owner: ml-platform", f"owner: {json.dumps(written)}")

    assert not set(project.refused("owner", "is not a valid name")) & {"\x1b", "\x07", "\u202e"}
    assert not project.touched.exists()


@pytest.mark.parametrize("stack", ["/etc/passwd", "../stacks/Pulumi.dev-gke"])
def test_a_path_as_stack_name_is_refused(stack: str, project: Project) -> None:
    done = project.flexspot("settings", "check", "-s", stack)

    assert done.returncode == 2
    assert "there is no stack" in done.stderr


def test_names_in_a_plan_are_plain_text_in_comments_and_terminals(tmp_path: Path) -> None:
    """No stack file allows this pool name. It is a plan as a stranger would submit it to a job that writes comments."""
    path = plan_file(tmp_path, "dev-gke")
    path.write_text(path.read_text().replace('"l4-spot"', json.dumps(MARKUP + ESCAPES)))
    comment, shown = flexspot("cost", path, "--format", "markdown"), flexspot("cost", path)

    assert (comment.returncode, shown.returncode) == (0, 0)
    assert "alert(1)" in comment.stdout
    commands = ("<script", "[y](", "\n# heading", "@everyone", "\x1b", "\x07", "\u202e", "&#8238;")
    assert [each for each in commands if each in comment.stdout] == []
    assert "\\x1b[2J" in shown.stdout, "everybody sees it"
    assert not set(shown.stdout) & {"\x1b", "\x07", "\u202e"}


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: job}\nspec:\n  containers:\n  - name: main\n    image: acme/train:1\n"


@pytest.mark.parametrize(
    "more,message",
    [
        ("  deep: " + "[" * 20_000 + "]" * 20_000 + "\n", "nested over 100 deep"),
        (f"    resources: {{limits: {{nvidia.com/gpu: {'9' * 5000}}}}}\n", "has a limit of 1.0"),
    ],
    ids=["deep", "a number of 5,000 digits"],
)
def test_lint_handles_deep_nesting_and_huge_numbers(more: str, message: str, project: Project) -> None:
    (project.folder / "pod.yaml").write_text(POD + more)

    done = project.flexspot("lint", "pod.yaml")

    assert message in done.stdout
    assert "Traceback" not in done.stderr


def test_a_manifest_runs_no_code(project: Project) -> None:
    (project.folder / "pod.yaml").write_text(f'{POD}  extra: !!python/object/apply:os.system ["touch {project.touched}"]\n')

    assert project.flexspot("lint", "pod.yaml").returncode in {0, 1}
    assert not project.touched.exists()


def test_lint_does_not_show_files_behind_symbolic_links(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    secret = tmp_path_factory.mktemp("outside") / "secret"
    secret.write_text("token: do-not-show\nkind: Secret\n")
    manifests = project.folder / "manifests"
    manifests.mkdir()
    (manifests / "pod.yaml").symlink_to(secret)
    (manifests / "circle").symlink_to(manifests)

    done = project.flexspot("lint", "manifests", "--details")

    assert done.returncode == 0
    assert "do-not-show" not in done.stdout + done.stderr


@pytest.mark.parametrize("shown", ["text", "sarif", "github"])
def test_names_in_manifests_are_plain_text_in_terminals_and_workflows(shown: str, project: Project) -> None:
    name = json.dumps("x\x1b[2J\n::set-output name=a::b")
    (project.folder / "pod.yaml").write_text(POD.replace("name: main", f"name: {name}") + "    resources: {limits: {nvidia.com/gpu: 99}}\n")

    done = project.flexspot("lint", "pod.yaml", "--format", shown)

    assert "nvidia.com/gpu" in done.stdout
    assert "\x1b" not in done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("::set-output")] == []
    if shown == "sarif":
        # SARIF readers show the text itself.
        [result, *_] = json.loads(done.stdout)["runs"][0]["results"]
        assert "\\x1b[2J" in result["message"]["text"]
        assert "\x1b" not in result["message"]["text"]
