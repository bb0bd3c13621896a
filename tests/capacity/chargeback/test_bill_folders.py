"""Folders as exports deliver them: the files that are the bill of a month, and the errors if that is unclear."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from made_bills import cur_row, table
from made_parquet import export_table, parquet_file

from flexspot.capacity.chargeback.bills import folders
from flexspot.capacity.chargeback.bills.entries import BillError
from flexspot.capacity.chargeback.bills.folders import parts_of, read_delivery

if TYPE_CHECKING:
    from pathlib import Path

OCTOBER = (int(datetime(2026, 10, 1, tzinfo=UTC).timestamp()), int(datetime(2026, 11, 1, tzinfo=UTC).timestamp()))
PERIOD = "BILLING_PERIOD=2026-10"
OLDER, NEWER = "2026-11-01T03:04:05.678Z-0c1d", "2026-11-02T03:04:05.678Z-00aa"
PARQUET = ".snappy.parquet"


def part(folder: Path, name: str, count: int = 1) -> Path:
    """Write a part with this number of rows and a unique name."""
    path = folder / name
    rows = [cur_row(identity_line_item_id=f"{path} {number}") for number in range(count)]
    if name.endswith("parquet"):
        return parquet_file(path, export_table([*rows, cur_row()]).slice(0, count))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(table(rows) if rows else "")
    return path


def manifest(folder: Path, *keys: object, name: str = "dataFiles") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cur-Manifest.json").write_text(json.dumps({name: list(keys)}))


def chosen(folder: Path) -> list[str]:
    return [each.relative_to(folder).as_posix() for each in parts_of(folder, *OCTOBER)]


def refused(folder: Path) -> str:
    with pytest.raises(BillError) as refused_bill:
        list(read_delivery(folder, {}, *OCTOBER))
    return str(refused_bill.value)


def test_all_parts_of_a_folder_are_one_bill(tmp_path: Path) -> None:
    for number in (1, 2, 10):
        part(tmp_path / "data" / PERIOD, f"cur-{number:05}{PARQUET}", 2)
    part(tmp_path / "data" / "BILLING_PERIOD=2026-09", f"cur-00001{PARQUET}")
    for number in range(3, 10):
        part(tmp_path / "data" / PERIOD, f"cur-{number:05}{PARQUET}", 0)

    assert chosen(tmp_path) == [f"data/{PERIOD}/cur-{number:05}{PARQUET}" for number in range(1, 11)]
    assert len(list(read_delivery(tmp_path, {}, *OCTOBER))) == 6
    assert len(list(read_delivery(tmp_path / "data" / PERIOD, {}, *OCTOBER))) == 6
    # A month in another time zone has hours of two UTC months.
    assert len(parts_of(tmp_path, OCTOBER[0] - 3600, OCTOBER[1] - 3600)) == 11


def test_of_refreshes_that_are_kept_the_newest_counts(tmp_path: Path) -> None:
    data = tmp_path / "data" / PERIOD
    for name in (f"{OLDER}/cur-00001{PARQUET}", f"{OLDER}/cur-00002{PARQUET}", f"{NEWER}/cur-00001{PARQUET}"):
        part(data, name)

    assert chosen(tmp_path) == [f"data/{PERIOD}/{NEWER}/cur-00001{PARQUET}"]
    assert chosen(data / OLDER) == [f"cur-00001{PARQUET}", f"cur-00002{PARQUET}"]


def test_a_manifest_lists_the_files_of_the_newest_refresh(tmp_path: Path) -> None:
    data, metadata = tmp_path / "data" / PERIOD, tmp_path / "metadata" / PERIOD
    for name in (f"{OLDER}/cur-00001{PARQUET}", f"{NEWER}/cur-00001{PARQUET}"):
        part(data, name)
    # The manifest decides, not the time in a folder's name: AWS may name an older edition as the newest.
    manifest(metadata, f"s3://bucket/prefix/cur/data/{PERIOD}/{OLDER}/cur-00001{PARQUET}")
    manifest(metadata / OLDER, f"s3://bucket/prefix/cur/data/{PERIOD}/{OLDER}/cur-00001{PARQUET}")
    manifest(metadata / NEWER, f"s3://bucket/prefix/cur/data/{PERIOD}/{NEWER}/cur-00001{PARQUET}")

    assert chosen(tmp_path) == [f"data/{PERIOD}/{OLDER}/cur-00001{PARQUET}"]
    for listed in (
        {"s3Uri": f"s3://bucket/cur/data/{PERIOD}/{NEWER}/cur-00001{PARQUET}"},
        {"key": f"data/{PERIOD}/{NEWER}/cur-00001{PARQUET}"},
    ):
        manifest(metadata, listed)
        assert chosen(tmp_path) == [f"data/{PERIOD}/{NEWER}/cur-00001{PARQUET}"]
    (data / NEWER / f"cur-00001{PARQUET}").unlink()
    assert "which is missing" in refused(tmp_path), "the older one is no substitute"


def test_a_part_that_the_manifest_does_not_list_is_left_over(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        part(tmp_path / "data" / PERIOD, f"cur-{number:05}{PARQUET}")
    keys = [f"s3://bucket/p/cur/data/{PERIOD}/cur-{number:05}{PARQUET}" for number in (1, 2)]
    manifest(tmp_path / "metadata" / PERIOD, *keys)

    assert len(chosen(tmp_path)) == 2
    manifest(tmp_path / "metadata" / PERIOD, *keys, f"s3://bucket/p/cur/data/{PERIOD}/cur-00004{PARQUET}")
    assert f"lists 'cur-00004{PARQUET}', which is missing" in refused(tmp_path)


def test_a_legacy_report_is_the_assembly_that_its_manifest_names(tmp_path: Path) -> None:
    month = tmp_path / "20261001-20261101"
    for assembly in ("aaaa", "bbbb"):
        part(month, f"{assembly}/cur-00001.csv")
        manifest(month / assembly, f"/prefix/cur/20261001-20261101/{assembly}/cur-00001.csv", name="reportKeys")

    assert "several exports of a month" in refused(tmp_path)
    manifest(month, "/prefix/cur/20261001-20261101/bbbb/cur-00001.csv", name="reportKeys")
    assert chosen(tmp_path) == ["20261001-20261101/bbbb/cur-00001.csv"]


def test_the_status_table_and_the_statements_of_athena_are_no_bill(tmp_path: Path) -> None:
    part(tmp_path, f"year=2026/month=10/cur-00001{PARQUET}")
    part(tmp_path, "cost_and_usage_data_status/cost_and_usage_data_status.parquet")
    for name in ("create-table.sql", "crawler-cfn.yml", "_SUCCESS", ".hidden"):
        (tmp_path / name).write_text("x")

    assert chosen(tmp_path) == [f"year=2026/month=10/cur-00001{PARQUET}"]


def test_what_bigquery_exports_in_shards_is_one_bill(tmp_path: Path) -> None:
    for number in (0, 1):
        part(tmp_path, f"bill-{number:012}.parquet")

    assert len(chosen(tmp_path)) == 2


WRONG = {
    "it is an empty folder": (),
    "without a bill of the report's period": ("BILLING_PERIOD=2026-09/cur-00001.parquet",),
    "part 2 of 'cur' is missing": ("cur-00001.parquet", "cur-00003.parquet"),
    "part 1 of 'cur' is missing": ("cur-00002.parquet",),
    "part 0 of 'bill' is missing": ("bill-000000000001.parquet",),
    "part 1 of 'cur' more than once": ("cur-00001.parquet", "cur-00001.csv"),
    "several exports (a, b)": ("a-00001.parquet", "b-00001.parquet"),
    "several exports (files without a number, b)": ("a.parquet", "b-00001.parquet"),
    "in several folders (x, y)": ("x/cur-00001.parquet", "y/cur-00001.parquet"),
    f"in several folders (., {NEWER})": ("cur-00001.parquet", f"{NEWER}/cur-00001.parquet"),
    "cur-00001.zip is not part of a bill": ("cur-00001.zip",),
}


@pytest.mark.parametrize("problem", WRONG)
def test_an_ambiguous_or_incomplete_folder_is_refused(tmp_path: Path, problem: str) -> None:
    for name in WRONG[problem]:
        part(tmp_path, name)

    assert problem in refused(tmp_path)


@pytest.mark.parametrize(
    "written", ["", "[]", "{}", '{"dataFiles": 1}', '{"dataFiles": [{}]}', '{"dataFiles": ["a"', "[" * 100_000, '{"dataFiles": [null]}']
)
def test_an_invalid_manifest_is_reported(tmp_path: Path, written: str) -> None:
    part(tmp_path, "cur-00001.parquet")
    (tmp_path / "cur-Manifest.json").write_text(written)

    assert "cur-Manifest.json is not a manifest that lists the parts of a bill" in refused(tmp_path)


def test_a_part_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    part(tmp_path, "cur-00001.csv")
    (tmp_path / "cur-00002.csv").write_text("")

    assert refused(tmp_path) == "cur-00002.csv: it is empty"


def test_a_bill_without_rows_is_refused_as_a_folder_and_as_a_file(tmp_path: Path) -> None:
    path = part(tmp_path, "cur-00001.parquet", 0)

    assert refused(tmp_path) == refused(path) == "it has no rows"


def test_links_to_folders_are_not_followed_and_files_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part(tmp_path / "bill", "cur-00001.parquet")
    (tmp_path / "bill" / "again").symlink_to(tmp_path / "bill", target_is_directory=True)
    assert chosen(tmp_path / "bill") == ["cur-00001.parquet"]

    monkeypatch.setattr(folders, "MAX_PARTS", 0)
    assert "more than 0 files" in refused(tmp_path / "bill")
