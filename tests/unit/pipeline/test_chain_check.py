"""A chain that cannot end well is refused before Spark starts, in one sentence."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from distributary.cli import main
from distributary.pipeline.chain_check import check_chain
from distributary.pipeline.config import STEPS, read_config
from distributary.pipeline.job_tables import READS, WRITES
from distributary.pipeline.schemas import TABLES
from distributary.pipeline.store import Store

FILES = {
    "users.csv": "user,broker\nann,b1\nbob,b2\n",
    "subscriptions.csv": "subscription_id,user,filters,profile,tolerance\ns1,ann,[],,\n",
    "stranger.csv": "subscription_id,user,filters,profile,tolerance\ns1,eve,[],,\ns2,dan,[],,\n",
    "short.csv": "user\nann\n",
    "overlay.csv": 'broker,identifier,delays\nb1,0a,"[0]"\n',
    "graph.json": "{}",
}
USERS = "[[ingest]]\ntable = 'users'\nfiles = ['users.csv']\n"
STRANGER = "[[ingest]]\ntable = 'subscriptions'\nfiles = ['stranger.csv']\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    store = Store(str(tmp_path / "data"))
    for name in ("publications", "access_costs", "core_costs", "brokers"):
        store.write(name, TABLES[name].arrow.empty_table())
    subscriptions = pa.table(
        {name: pa.array([name[0]], pa.string()) for name in TABLES["subscriptions"].arrow.names}
    )
    store.write("subscriptions", subscriptions)
    store.write("overlay", pa.table({"broker": ["b1"], "identifier": ["0a"], "delays": [[0.0]]}))
    return tmp_path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[match]\n[tree]", r"[tree]: {data}/rates: there is no such table, and no job of the ch"),
        (
            "[rates]",
            "[rates]: {data}/quotes: there is no such table, and no job of the",
        ),
        (
            "[[ingest]]\ntable = 'users'\nfiles = ['none.csv']",
            "[ingest]: {folder}/none.csv: does",
        ),
        (
            "[[ingest]]\ntable = 'users'\nfiles = ['short.csv']",
            "short.csv: column 'broker' is",
        ),
        (
            "[[ingest]]\ntable = 'people'\nfiles = ['users.csv']",
            "[ingest]: table: 'people' is not",
        ),
        ("[match]\n[plans]\nmethod = 'magic'", "[plans]: method: "),
        ("[match]\ngraph = 'graph.json'", "[match]: {folder}/graph.json: "),
        ("[channels]\nspace = 'none.json'", "[channels]: {folder}/none.json: "),
        ("[sample]\nusers = -1", "[sample]: "),
        (
            f"{USERS}{STRANGER}[channels]\n[wire]",
            "[wire]: subscriptions: user 'dan' is not in users (and 1 more like it); hint",
        ),
        # Those who subscribe are in the folder, and users in a file.
        (f"{USERS}[channels]\n[wire]", "[wire]: subscriptions: user 'u' is not in users; hint"),
        (
            f"{USERS}[[ingest]]\ntable = 'quotes'\nfiles = ['users.csv']\n[rates]\n[tree]",
            "users.csv: column 'object' is missing",
        ),
    ],
)
def test_what_would_end_a_chain_is_told_before_spark_starts(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    (folder / "run.toml").write_text(f"[data]\nfolder = 'data'\n{text}\n")
    assert main(["pipeline", "run", str(folder / "run.toml")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message.format(data=folder / "data", folder=folder) in err
    assert err.startswith("error: ") or "run.toml" in err
    assert err.count("\n") == 1


def test_a_source_that_is_no_broker_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(str(folder / "data"))
    store.write("rates", TABLES["rates"].arrow.empty_table())
    (folder / "run.toml").write_text("[data]\nfolder = 'data'\n[tree]\nsource = 'b9'\n")
    assert main(["pipeline", "run", str(folder / "run.toml")]) == 2
    assert "[tree] source: 'b9' is not a broker of overlay" in capsys.readouterr().err


def test_a_chain_that_can_end_well_is_let_through(folder: Path) -> None:
    text = f"{USERS}[[ingest]]\ntable = 'subscriptions'\nfiles = ['subscriptions.csv']\n"
    (folder / "run.toml").write_text(f"{text}[match]\n[channels]\n[traffic]\n[wire]\n[plans]\n")
    check_chain(Store(str(folder / "data")), read_config(folder / "run.toml").steps)
    (folder / "run.toml").write_text(
        "[sample]\n" + "".join(f"[{job}]\n" for job in WRITES if job != "sample")
    )
    check_chain(Store(str(folder / "empty")), read_config(folder / "run.toml").steps)
    assert not (folder / "empty").exists()


def test_every_job_of_a_chain_says_what_it_reads_and_writes() -> None:
    assert {*READS, "sample", "ingest"} == set(STEPS)
    assert {*WRITES, "ingest"} == set(STEPS)
    named = {name for names in (*READS.values(), *WRITES.values()) for name in names}
    assert named <= set(TABLES)
