"""A folder of one's own files goes into the tables that the files are called after."""

from __future__ import annotations

from pathlib import Path

import pytest

from distributary.cli import main
from distributary.errors import BadInput
from distributary.pipeline.jobs.load import frames, load, tables_in
from distributary.pipeline.store import Store


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".").replace("_dash_", "-")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_files_belong_to_the_table_that_they_or_their_folder_are_called_after(
    tmp_path: Path,
) -> None:
    write(
        tmp_path,
        quotes_dash_monday_dot_csv="",
        quotes_dash_tuesday_dot_csv="",
        access_costs_dot_csv="",
        publications__users_dash_of_dash_monday_dot_jsonl="",
        publications__monday_dot_jsonl="",
        users_dot_csv="",
    )
    found = {
        name: [str(Path(path).relative_to(tmp_path)) for path in paths]
        for name, paths in tables_in(str(tmp_path)).items()
    }
    # A name of its own says more than that of its folder.
    assert found == {
        "users": ["publications/users-of-monday.jsonl", "users.csv"],
        "publications": ["publications/monday.jsonl"],
        "access_costs": ["access_costs.csv"],
        "quotes": ["quotes-monday.csv", "quotes-tuesday.csv"],
    }
    assert next(iter(found)) == "users"


@pytest.mark.parametrize("name", ["people.csv", "usersx.csv", "quarantine.csv"])
def test_a_file_that_is_called_after_no_table_is_named_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "users.csv").write_text("user,broker\n")
    (tmp_path / name).write_text("x\n")
    with pytest.raises(BadInput, match=rf"{name}: is not called after a table; hint: as users"):
        tables_in(str(tmp_path))
    assert main(["pipeline", "load", str(tmp_path), "--data", str(tmp_path / "data")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert not (tmp_path / "data").exists()


def test_one_command_reads_a_folder_into_all_its_tables(store: Store, tmp_path: Path) -> None:
    """Users come first: publications are compared with them."""
    event = '{"specversion":"1.0","id":"%s","source":"/s","type":"t","clientid":"%s"}\n'
    write(
        tmp_path / "files",
        publications_dot_jsonl=event % ("1", "ann") + event % ("2", "eve"),
        users_dot_csv="user,broker\nann,b1\nann,b2\n",
        quotes_dot_csv="object,time,value\no1,2026-01-05T00:00:00Z,1\n",
    )
    folder = str(tmp_path / "files")
    # Without users there, nobody could be missed among them.
    assert list(frames(store, folder, publisher="clientid")) == ["users", "publications", "quotes"]
    for _ in range(2):
        report = load(store, folder, publisher="clientid")
        assert report.rows_in == {"users": 2, "publications": 2, "quotes": 1}
        assert report.rows_out == {"users": 1, "publications": 1, "quotes": 1, "quarantine": 2}
        assert report.figures == {"files": 3}
