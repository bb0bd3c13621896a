"""Two revisions of a real Git repository, and a copy of one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from git_repositories import git

from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.review.revisions import Repository, repository_of

if TYPE_CHECKING:
    from pathlib import Path


class Clone:
    """A repository with `main` and a branch `change`. `main` has a later commit."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "-q", "-b", "main")
        self.commit("first", {"a.yaml": "a: 1\n", "sub/b.yaml": "b: 1\n", ".gitattributes": "b.yaml export-ignore\n"})
        self.git("checkout", "-q", "-b", "change")
        self.commit("change", {"a.yaml": "a: 2\n", "new name.yaml": "c: 1\n"})
        self.git("checkout", "-q", "main")
        self.commit("main goes on", {"d.yaml": "d: 1\n"})

    def git(self, *arguments: str) -> str:
        return git(self.root, *arguments)

    def commit(self, message: str, files: dict[str, str]) -> None:
        for path, content in files.items():
            (self.root / path).parent.mkdir(exist_ok=True)
            (self.root / path).write_text(content)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    root = tmp_path / "clone"
    root.mkdir()
    return Clone(root)


def test_a_change_is_compared_with_the_last_common_commit(clone: Clone) -> None:
    repository = repository_of(clone.root / "sub")
    head = repository.commit("change")
    base = repository.common(repository.commit("main"), head)

    assert repository.root == clone.root
    assert repository.changed(base, head) == ["a.yaml", "new name.yaml"], "what main did since is no part of the change"
    assert repository.content(base, "a.yaml") == b"a: 1\n"
    assert repository.content(head, "a.yaml") == b"a: 2\n"
    assert repository.content(base, "new name.yaml") is None
    assert repository.files(head, clone.root.relative_to(clone.root)) == [".gitattributes", "a.yaml", "new name.yaml", "sub"]


def test_the_working_tree_can_be_compared(clone: Clone) -> None:
    repository = Repository(clone.root)
    (clone.root / "a.yaml").write_text("a: 9\n")
    (clone.root / "untracked.yaml").write_text("")
    base = repository.commit("HEAD")

    assert repository.changed(base, None) == ["a.yaml", "untracked.yaml"]
    assert repository.content(None, "a.yaml") == b"a: 9\n"


def test_a_copy_has_every_file_of_the_commit_and_the_repository_stays_as_it_is(clone: Clone, tmp_path: Path) -> None:
    repository, before = Repository(clone.root), clone.git("status", "--porcelain=v2", "--branch")
    repository.written_to(tmp_path / "copy", repository.commit("change"))

    assert (tmp_path / "copy" / "a.yaml").read_text() == "a: 2\n"
    assert (tmp_path / "copy" / "sub" / "b.yaml").is_file(), "an archive would leave it out"
    assert clone.git("status", "--porcelain=v2", "--branch") == before
    assert clone.git("worktree", "list").count("\n") == 0


def test_the_content_of_a_link_is_not_read(clone: Clone) -> None:
    (clone.root / "link.yaml").symlink_to("/etc/hostname")
    clone.git("add", "-A")
    clone.git("commit", "-q", "-m", "a link")
    repository = Repository(clone.root)

    assert repository.content("HEAD", "link.yaml") is None
    assert repository.content(None, "link.yaml") is None


@pytest.mark.parametrize("written", ["nowhere", "--output=x", "", "HEAD:a.yaml", "@{-9}"])
def test_an_unknown_revision_is_refused_with_a_remedy(clone: Clone, written: str) -> None:
    with pytest.raises(ExplainedError, match="is not a revision") as refused:
        Repository(clone.root).commit(written)

    assert refused.value.exit_code == 2
    assert "fetch" in refused.value.remedy
    assert not (clone.root / "x").exists()


def test_histories_without_a_common_commit_are_refused(clone: Clone) -> None:
    clone.git("checkout", "-q", "--orphan", "other")
    clone.git("commit", "-q", "-m", "of its own")
    repository = Repository(clone.root)

    with pytest.raises(ExplainedError, match="no common commit"):
        repository.common(repository.commit("main"), repository.commit("other"))


def test_a_folder_in_no_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExplainedError, match="is not in a Git repository"):
        repository_of(tmp_path)


def test_missing_git_is_reported(clone: Clone, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ExplainedError, match="git cannot be started"):
        repository_of(clone.root)
