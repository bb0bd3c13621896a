"""Programs run by the real Pulumi engine with providers of this process."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from pulumi import automation

from flexspot.lab.providers.serving import serve

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from flexspot.lab.providers.serving import StandIn


@contextmanager
def stack_of(program: Callable[[], None], folder: Path, links: Path, **providers: StandIn) -> Generator[automation.Stack]:
    """Yield a stack of `program` with separate state in `folder`. `links` is the folder of the built tools."""
    (folder / "state").mkdir(parents=True, exist_ok=True)
    with ExitStack() as serving:
        attached = [f"{name}:{serving.enter_context(serve(provider))}" for name, provider in providers.items()]
        yield automation.create_or_select_stack(
            stack_name="dev",
            project_name="trial",
            program=program,
            opts=automation.LocalWorkspaceOptions(
                work_dir=str(folder),
                pulumi_home=str(folder / "home"),
                pulumi_command=automation.PulumiCommand(root=str(links)),
                env_vars={
                    "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
                    "PULUMI_CONFIG_PASSPHRASE": "test",
                    "PULUMI_SKIP_UPDATE_CHECK": "true",
                    "PULUMI_DEBUG_PROVIDERS": ",".join(attached),
                },
            ),
        )
