"""`flexspot cost` of arbitrary Pulumi programs: three of them in the real engine, correct to the cent by calculation."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from flexspot.infra.cli.app import app
from flexspot.lab.engine import offline_engine
from flexspot.lab.progress import Silence
from flexspot.lab.tools.build import ensure_tools, family_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexspot.lab.tools.build import Tools

pytestmark = pytest.mark.engine

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).with_name("foreign_programs")
SETTINGS = {"aws": "{aws:region: us-east-1}", "google": "{gcp:project: acme, gcp:region: us-central1}", "kubernetes": "{}"}
USUAL, LONG = 730, 744


def money(*amounts: Decimal | str | int) -> Decimal:
    """Return a sum in cents. Each line is rounded first, as on an invoice."""
    return sum((Decimal(each).quantize(Decimal("0.01"), ROUND_HALF_UP) for each in amounts), start=Decimal(0))


def usd(text: str) -> Decimal:
    return Decimal(text)


@pytest.fixture(scope="module")
def preview(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    """Yield a function that previews a program once and returns the file with the output.

    It runs plain `pulumi preview --json --show-sames`.
    """
    host = ensure_tools(CHECKOUT / ".tools", Silence(), wanted=(family_named("pulumi-python"),))
    with offline_engine(lambda: tools) as engine:

        @functools.cache
        def run(name: str) -> Path:
            folder = tmp_path_factory.mktemp(name)
            shutil.copy(PROGRAMS / name / "__main__.py", folder)
            (folder / "Pulumi.yaml").write_text(f"name: {name}\nruntime: python\n")
            (folder / "Pulumi.test.yaml").write_text(f"config: {SETTINGS[name]}\n")
            environment = (
                os.environ
                | engine.environment
                | {
                    "PATH": os.pathsep.join([str(host.links / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]),
                    "PULUMI_HOME": str(folder / "home"),
                    "PULUMI_BACKEND_URL": f"file://{folder}",
                    "PULUMI_CONFIG_PASSPHRASE": "",
                    "PYTHONWARNINGS": "ignore",
                }
            )
            printed = ""
            for command in (("stack", "init", "test"), ("preview", "--stack", "test", "--json", "--show-sames")):
                done = subprocess.run(
                    [tools.binary("pulumi"), *command, "--non-interactive"],
                    cwd=folder,
                    env=environment,
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=300,
                    stdin=subprocess.DEVNULL,
                )
                assert done.returncode == 0, done.stdout + done.stderr
                printed = done.stdout
            written = folder / "preview.json"
            written.write_text(printed)
            return written

        yield run


def output(path: Path, *options: str) -> str:
    result = CliRunner().invoke(app, ["cost", str(path), *options])
    assert result.exit_code == 0, result.output
    return result.stdout


def cost(path: Path, *options: str) -> dict[str, Any]:
    return json.loads(output(path, "--format", "json", *options))


def months(found: dict[str, Any]) -> tuple[Decimal, Decimal, Decimal]:
    sums = found["usd_a_month"]
    return Decimal(sums["declared"]), Decimal(sums["most"]), Decimal(sums["least"])


def test_an_aws_program_costs_the_sum_calculated_by_hand(preview: Callable[[str], Path]) -> None:
    """Four machines are two on-demand and two Spot: a base of one, and a quarter of three rounded up. Eight are three and five."""
    found = cost(preview("aws"))

    def sums(hours: int, *more: Decimal) -> Decimal:
        # The cluster, the NAT gateway, its address, two load balancers, an endpoint in two zones, a key, and a disk.
        always = ["0.10", "0.045", "0.005", "0.0225", "0.0225", "0.02"]
        bastion = (usd("0.0104") + usd("0.005")) * hours + 30 * usd("0.08")
        return money(*(usd(each) * hours for each in always), 1, 500 * usd("0.10"), bastion, *more)

    gp3_of_gpus = 100 * usd("0.08") + 500 * usd("0.005") + 125 * usd("0.04")
    declared = sums(
        USUAL,
        2 * usd("0.192") * USUAL + 2 * 50 * usd("0.08"),  # the node group
        2 * usd("0.8048") * USUAL + 2 * usd("0.3659") * USUAL + 4 * gp3_of_gpus,
    )
    most = sums(LONG, 4 * usd("0.192") * LONG + 4 * 50 * usd("0.08"), 3 * usd("1.006") * LONG + 5 * usd("0.4213") * LONG + 8 * gp3_of_gpus)
    least = sums(USUAL, 1 * usd("0.192") * USUAL + 1 * 50 * usd("0.08"))
    assert months(found) == (declared, most, least)
    assert found["not_priced"] == {"aws:rds/instance:Instance": 1}
    assert found["not_known"] == []
    assert found["complete"] is False
    assert {each["name"] for each in found["by_use"]} == {"checkpoints", "main", "registry", "web", "inference"}
    assert found["change"] == found["usd_a_month"], "all of it is new"


def test_a_google_cloud_program_costs_the_sum_calculated_by_hand(preview: Callable[[str], Path]) -> None:
    """The program names no zones, so the region's three count. The machine's price includes the A100s."""
    found = cost(preview("google"))

    system, a100 = usd("0.134023"), usd("3.673385")

    def sums(hours: int, nodes: int, *more: Decimal) -> Decimal:
        # The cluster, nodes of the system pool, two A100s, a machine, a disk, the address and the forwarding rule.
        pools = (nodes * system * hours + nodes * 50 * usd("0.10"), 2 * a100 * hours + 2 * 100 * usd("0.10"))
        machine = (usd("0.033506") + usd("0.005")) * hours + 20 * usd("0.04")
        return money(usd("0.10") * hours, *pools, machine, 1000 * usd("0.10"), usd("0.005") * hours, usd("0.025") * hours, *more)

    declared = sums(USUAL, 3)
    # Cloud NAT bills at most 32 nodes.
    most = sums(LONG, 9, 5 * usd("0.512112") * LONG + 5 * 200 * usd("0.17"), 32 * usd("0.0014") * LONG)
    assert months(found) == (declared, most, declared)
    assert found["not_priced"] == {"gcp:sql/databaseInstance:DatabaseInstance": 1}
    assert found["not_known"] == []


def test_kubernetes_objects_cost_the_sum_calculated_by_hand(preview: Callable[[str], Path]) -> None:
    """20 GPUs are two machines of eight. 40 vCPU cost at most the dearer machine's price per vCPU. A pool of any machine has no bound."""
    found = cost(preview("kubernetes"))

    l4 = usd("0.706832")
    declared = money(
        usd("0.10") * USUAL,  # GKE's cluster
        1 * l4 * USUAL + 1 * 100 * usd("0.10"),
        3 * 100 * usd("0.08"),  # volumes of three replicas
        usd("0.0225") * USUAL,
        50 * usd("0.08"),
    )
    most = money(
        2 * usd("55.04") * LONG + 2 * 200 * usd("0.08"),
        40 * usd("0.192") / 4 * LONG + 10 * 20 * usd("0.08"),
        usd("0.10") * LONG,
        4 * l4 * LONG + 4 * 100 * usd("0.10"),
        3 * 100 * usd("0.08"),
        usd("0.0225") * LONG,
        50 * usd("0.08"),
    )
    assert months(found) == (declared, most, declared)
    assert found["not_known"] == [{"name": "anything", "what": "which machines it may make"}]
    assert found["at_most_is_a_bound"] is False
    assert found["not_priced"] == {"kubernetes:sql.cnrm.cloud.google.com/v1beta1:SQLInstance": 1}


def test_each_price_has_source_day_and_whether_it_is_checked(preview: Callable[[str], Path]) -> None:
    path = preview("aws")
    prices = [price for each in cost(path)["resources"] for price in each["prices"]]
    text, markdown = (output(path, "--format", form) for form in ("text", "markdown"))

    assert {each["what"] for each in prices} >= {"cluster", "gp3-storage", "m6i.xlarge on-demand", "g6.xlarge spot"}
    assert all(each["source"] and each["as_of"] and isinstance(each["verified"], bool) for each in prices)
    for printed in (text, markdown):
        assert "karpenter" in printed
        assert "2026-07-20" in printed
        assert "(?)" in printed
    assert "1 x aws:rds/instance:Instance" in " ".join(text.split())
