"""Building tools with the real go command from a tiny local module, and with go commands that misbehave."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
import zipfile
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from flexspot.lab.progress import ExitCode, LabError, Silence
from flexspot.lab.tools.build import Family, Patch, ensure_tools, read_families

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

PutGo = Callable[[str], None]
"""Puts the test's own `go`, a shell script, first on PATH."""

PINS = """\
module example.test/tools

go 1.21

require example.test/hello v1.2.3

replace example.test/hello => ../../source
"""


@pytest.fixture
def wanted(tmp_path: Path) -> tuple[Family, ...]:
    """Return a family with one program and no dependencies except a module next to it."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "go.mod").write_text("module example.test/hello\n\ngo 1.21\n")
    (source / "main.go").write_text('package main\n\nvar Version = "unset"\n\nfunc main() { println("hello " + Version) }\n')
    (source / "tagged.go").write_text('//go:build polite\n\npackage main\n\nfunc init() { Version += ", please" }\n')
    (source / "words.yaml").write_text("greeting: hello\n")
    (source / "greet").write_text("#!/bin/sh\necho script\n")
    folder = tmp_path / "modules" / "hello"
    folder.mkdir(parents=True)
    (folder / "go.mod").write_text(PINS)
    (folder / "go.sum").touch()
    tools_yaml = folder.parent / "tools.yaml"
    tools_yaml.write_text(
        textwrap.dedent("""
            families:
              - name: hello
                module: example.test/hello
                binaries: {hello: example.test/hello}
                ldflags: ["-X main.Version=v1.2.3"]
                tags: [polite]
                assets: {words: ["*.yaml"]}
                scripts: [greet]
        """)
    )
    return read_families(tools_yaml)


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PutGo:
    def put(script: str) -> None:
        folder = tmp_path / "fake-go"
        folder.mkdir(exist_ok=True)
        go = folder / "go"
        go.write_text(f"#!/bin/sh\n{script}\n")
        go.chmod(go.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    return put


def leftovers(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.glob("*") if not path.name.endswith(".lock"))


def printed(program: Path) -> str:
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def test_a_program_is_built_once_and_linked_with_its_files_into_every_checkout(
    wanted: tuple[Family, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    litter = tmp_path / "cache" / f".hello-{wanted[0].key}.abc123"
    litter.mkdir(parents=True)

    tools = ensure_tools(tmp_path / "links", Silence(), tmp_path / "cache", wanted)

    assert not litter.exists(), "what a killed build left behind"
    assert printed(tools.binary("hello")) == "hello v1.2.3, please\n"
    assert [path.read_text() for path in tools.assets("hello", "words")] == ["greeting: hello\n"]
    assert printed(tools.binary("greet")) == "script\n"
    built = tools.binary("hello").stat()
    # Linked from the cache, without any go command.
    monkeypatch.setenv("PATH", "")
    for links in ("links", "second"):
        assert ensure_tools(tmp_path / links, Silence(), tmp_path / "cache", wanted).binary("hello").stat() == built


def test_the_cache_key_contains_everything_that_determines_the_build(wanted: tuple[Family, ...]) -> None:
    [family] = wanted
    source = family.folder / "main.go"
    source.write_text('package main\n\nfunc main() { println("ours") }\n')
    keys = [family.key, family.model_copy(update={"tags": ()}).key]
    (family.folder / "go.mod").write_text(PINS.replace("go 1.21", "go 1.22"))
    keys.append(family.key)
    source.write_text('package main\n\nfunc main() { println("changed") }\n')
    keys.append(family.key)

    assert len(set(keys)) == len(keys)
    assert family.model_copy(update={"on_request": True}).key == keys[-1], "when a family is built is no part of what is built"


def test_two_builds_at_once_yield_one_result(wanted: tuple[Family, ...], tmp_path: Path) -> None:
    errors: list[BaseException] = []

    def build(links: str) -> None:
        try:
            ensure_tools(tmp_path / links, Silence(), tmp_path / "cache", wanted)
        except BaseException as error:  # noqa: BLE001 -- handed to the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=build, args=(f"links-{number}",)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert leftovers(tmp_path / "cache") == [f"hello-{wanted[0].key}"]


def test_a_missing_go_is_named_with_what_to_install(wanted: tuple[Family, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(LabError, match="cannot build hello: there is no Go toolchain") as refused:
        ensure_tools(tmp_path / "links", Silence(), tmp_path / "cache", wanted)

    assert refused.value.exit_code is ExitCode.BAD_USAGE
    assert "install Go" in refused.value.remedy


def test_a_failed_compilation_names_the_part_and_shows_the_last_lines(wanted: tuple[Family, ...], tmp_path: Path) -> None:
    (tmp_path / "source" / "main.go").write_text("package main\n\nfunc main() { undefinedFunction() }\n")

    with pytest.raises(LabError, match="building hello failed") as refused:
        ensure_tools(tmp_path / "links", Silence(), tmp_path / "cache", wanted)

    assert any("undefined: undefinedFunction" in line for line in refused.value.evidence)
    assert leftovers(tmp_path / "cache") == []


@pytest.mark.parametrize(
    "said,advice",
    [
        ("write /somewhere: no space left on device", "free about"),
        ("dial tcp 192.0.2.1:443: i/o timeout", "check the connection to the Go module proxy"),
        ("go: go.mod requires go >= 1.99.0 (running go 1.26; GOTOOLCHAIN=local)", "install the Go version named above"),
    ],
)
def test_the_remedy_depends_on_gos_error(said: str, advice: str, wanted: tuple[Family, ...], tmp_path: Path, fake_go: PutGo) -> None:
    fake_go(f"echo '{said}' >&2; exit 1")

    with pytest.raises(LabError) as refused:
        ensure_tools(tmp_path / "links", Silence(), tmp_path / "cache", wanted)

    assert advice in refused.value.remedy
    assert refused.value.evidence == (said,)
    assert leftovers(tmp_path / "cache") == []


def test_much_output_on_both_streams_does_not_block_the_build(wanted: tuple[Family, ...], tmp_path: Path, fake_go: PutGo) -> None:
    # go list -deps of Kueue prints more than a pipe holds.
    fake_go("seq 1 60000; seq 1 60000 >&2; exit 3")

    with pytest.raises(LabError, match="ended with 3"):
        ensure_tools(tmp_path / "links", Silence(), tmp_path / "cache", wanted)


def test_an_interrupted_build_ends_the_compiler_and_leaves_nothing(wanted: tuple[Family, ...], tmp_path: Path, fake_go: PutGo) -> None:
    started = tmp_path / "started"
    fake_go(f"echo $$ > {started}.new; mv {started}.new {started}; exec sleep 600")
    program = textwrap.dedent(f"""
        from pathlib import Path
        from flexspot.lab.progress import Silence
        from flexspot.lab.tools.build import ensure_tools
        from flexspot.lab.tools.build import read_families
        ensure_tools(Path({str(tmp_path / "links")!r}), Silence(), Path({str(tmp_path / "cache")!r}),
                     read_families(Path({str(wanted[0].folder.parent / "tools.yaml")!r})))
    """)
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True) as build:
        deadline = time.monotonic() + 30
        while not started.exists():
            assert time.monotonic() < deadline, "the fake go command was never run"
            time.sleep(0.05)
        build.send_signal(signal.SIGINT)
        build.wait(30)

    compiler = int(started.read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(compiler, 0)
    assert leftovers(tmp_path / "cache") == []


def test_an_interrupt_at_the_very_start_of_the_compiler_ends_it_too(tmp_path: Path, fake_go: PutGo) -> None:
    started = tmp_path / "started"
    fake_go("exec sleep 600")
    program = textwrap.dedent(f"""
        import os, signal, subprocess
        from pathlib import Path
        from flexspot.lab.progress import Silence
        from flexspot.lab.tools.build import run_go

        class InterruptedAtTheStart(subprocess.Popen):
            def __init__(self, *arguments, **options):
                super().__init__(*arguments, **options)
                Path({str(started)!r}).write_text(str(self.pid))
                os.kill(os.getpid(), signal.SIGINT)

        subprocess.Popen = InterruptedAtTheStart
        run_go("hello", ["build"], Path({str(tmp_path)!r}), print)
    """)

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)

    assert "KeyboardInterrupt" in ended.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_a_patch_changes_the_program_and_one_that_no_longer_fits_stops_the_build(wanted: tuple[Family, ...], tmp_path: Path) -> None:
    fitting = Patch(file="main.go", find='"hello "', replace='"patched "', count=1)
    patched = wanted[0].model_copy(update={"patches": (fitting,)})
    outdated = wanted[0].model_copy(update={"patches": (fitting.model_copy(update={"count": 2}),)})

    tools = ensure_tools(tmp_path / "links", Silence(), tmp_path / "cache", (patched,))

    assert printed(tools.binary("hello")) == "patched v1.2.3, please\n"
    assert '"hello "' in (tmp_path / "source" / "main.go").read_text(), "the module's own source is left as it is"
    with pytest.raises(ValueError, match="2 times, but found 1"):
        ensure_tools(tmp_path / "links", Silence(), tmp_path / "cache", (outdated,))


def test_a_family_of_files_alone_fetches_its_module_and_compiles_nothing(
    wanted: tuple[Family, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (wanted[0].folder / "go.mod").write_text("module example.test/tools\n\ngo 1.21\n\nrequire example.test/hello v1.2.3\n")
    files = wanted[0].model_copy(update={"binaries": {}, "ldflags": (), "tags": (), "scripts": ()})
    put_into_proxy(tmp_path / "proxy", tmp_path / "source")
    monkeypatch.setenv("GOPROXY", f"file://{tmp_path / 'proxy'}")
    monkeypatch.setenv("GONOSUMDB", "example.test")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules-cache"))
    monkeypatch.setenv("GOFLAGS", "-modcacherw")

    tools = ensure_tools(tmp_path / "links", Silence(), tmp_path / "cache", (files,))

    assert [path.read_text() for path in tools.assets("hello", "words")] == ["greeting: hello\n"]
    assert not (tmp_path / "links" / "bin").exists()


def put_into_proxy(proxy: Path, source: Path) -> None:
    """Write a module as a Go module proxy serves it. The dependency in its go.mod cannot be fetched."""
    versions = proxy / "example.test" / "hello" / "@v"
    versions.mkdir(parents=True)
    go_mod = "module example.test/hello\n\ngo 1.21\n\nrequire example.test/absent v1.0.0\n"
    (versions / "v1.2.3.info").write_text('{"Version": "v1.2.3"}')
    (versions / "v1.2.3.mod").write_text(go_mod)
    with zipfile.ZipFile(versions / "v1.2.3.zip", "w") as packed:
        packed.writestr("example.test/hello@v1.2.3/go.mod", go_mod)
        packed.write(source / "words.yaml", "example.test/hello@v1.2.3/words.yaml")
