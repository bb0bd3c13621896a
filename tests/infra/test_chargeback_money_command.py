"""`flexspot chargeback` with changing prices, a commitment of US dollars an hour and a credit, in the format of the guide."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from chargeback_months import HOUR, Month
from contract_files import CONTRACT
from fake_prometheus import FakePrometheus, reported, served

from flexspot.capacity.catalog.price_book import PriceFile
from flexspot.capacity.chargeback.charges import CreditFile

DAY = ("--from", "2026-10-01", "--to", "2026-10-02")
PRICES = """
cloud: aws
sources: {contract: {citation: the contract of May, as_of: 2026-05-01, verified: true}}
prices:
  - {machine: p4d.24xlarge, region: us-east-1, capacity_type: on-demand, usd_per_hour: "20.00", source: contract}
  - {machine: p4d.24xlarge, region: us-east-1, capacity_type: on-demand, usd_per_hour: "24.00", source: contract,
     start: 2026-10-01T12:30:00Z}
spend_commitments:
  - name: sp-1
    kind: compute-savings-plan
    usd_per_hour: "15.00"
    end: 2026-10-01T20:00:00Z
    source: contract
    rates: [{machine: p4d.24xlarge, region: us-east-1, usd_per_hour: "10.00"}]
"""
CREDITS = """
credits:
  - {name: grant, usd: "100.00", cloud: aws, start: 2026-10-01T18:15:00Z, source: the console on 2026-11-02}
"""


@pytest.mark.slow
def test_a_day_with_all_three_costs_the_amount_calculated_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One on-demand node, which one team uses completely."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    month = Month()
    month.node("od-1", 0, 24 * HOUR, bought="on-demand", pool="a100")
    month.pod("train", "od-1", 0, 24 * HOUR, gpus=8, team="vision")
    prices, credits_file = tmp_path / "prices.yaml", tmp_path / "credits.yaml"
    prices.write_text(PRICES)
    credits_file.write_text(CREDITS)
    files = ("--prices", prices, "--credits", credits_file)
    with served(FakePrometheus(month)) as prometheus:
        found, shown = json.loads(reported(prometheus, *DAY, *files, "--format", "json")), reported(prometheus, *DAY, *files)

    # 20 hours at 15, of which the machine uses 10, then 4 hours at 24. The credit pays 100 of the last 5.75 hours' cost.
    assert (found["node_usd"], found["credit_usd"]) == ("396.00", "100.00")
    assert [each["unused_usd"] for each in found["spend_commitments"]] == ["100.00"]
    assert [(each["from"], each["usd_per_hour"]) for each in found["price_changes"]] == [("2026-10-01T12:30:00Z", "24")]
    assert {line["team"]: Decimal(line["total_usd"]) for line in found["lines"] if Decimal(line["total_usd"])} == {
        "vision": Decimal("296.00"),
        "(central)": Decimal("100.00"),
    }
    for line_of_report in ("committed, and not used: 100.00 of 300.00 USD", "credits: -100.00 of 100.00 USD", "left to pay: 296.00 USD"):
        assert line_of_report in shown


def test_examples_of_the_guide_are_valid() -> None:
    guide = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "chargeback.md").read_text()
    blocks = [re.sub(r"(?m)^    ", "", each) for each in re.findall(r"(?m)(?:^    .*\n)+", guide)]
    written = {
        key: yaml.safe_load(each) for each in blocks for key in ("prices:", "spend_commitments:", "credits:") if each.startswith(key)
    }

    assert len(CreditFile.model_validate(written["credits:"]).credits) == 2
    sources = dict.fromkeys(("contract", "may", "october"), CONTRACT["contract"])
    rows = {**written["prices:"], **written["spend_commitments:"]}
    file = PriceFile.model_validate({"cloud": "aws", "sources": sources, **rows})
    assert [each.start is None for each in file.prices] == [True, False]
    assert [each.kind.cloud.value for each in file.spend_commitments] == ["aws"]
