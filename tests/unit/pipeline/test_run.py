"""`pipeline run`: configurations, and a chain of jobs on one folder."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.pipeline_tables import put

from distributary.cli import main
from distributary.cli.pipeline.run import summary_lines
from distributary.content.publication import Publication
from distributary.content.publication_table import to_arrow
from distributary.errors import BadInput
from distributary.pipeline.config import STEPS, RunConfig, read_config
from distributary.pipeline.jobs.run import comparison, run
from distributary.pipeline.report import JobReport
from distributary.pipeline.store import Store


def config(tmp_path: Path, text: str) -> RunConfig:
    path = tmp_path / "run.toml"
    path.write_text(text)
    return read_config(path)


def test_jobs_run_in_an_order_of_their_own_with_the_options_given(tmp_path: Path) -> None:
    found = config(
        tmp_path,
        """
        [plans]
        alpha = 2
        graph = "graphs/own.json"
        [match]
        [[ingest]]
        table = "users"
        files = ["users.csv", "s3://bucket/users.csv"]
        [[ingest]]
        table = "quotes"
        files = ["quotes.csv"]
        add = true
        [data]
        folder = "market"
        """,
    )
    assert found.data == str(tmp_path / "market")
    assert [step.job for step in found.steps] == ["ingest", "ingest", "match", "plans"]
    first, second, match, plans = (dict(step.options) for step in found.steps)
    assert first == {
        "table": "users",
        "files": [str(tmp_path / "users.csv"), "s3://bucket/users.csv"],
    }
    assert second["add"] is True
    assert match == {}
    assert plans == {"alpha": 2.0, "graph": str(tmp_path / "graphs" / "own.json")}
    assert isinstance(plans["alpha"], float)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[macth]", r"run.toml: \[macth\]: 'macth' is not a job; hint: did you mean 'match'\?"),
        (
            "[plans]\nmetod = 'exact'",
            r"\[plans\]: 'metod' is not an option of it; hint: did you mean 'method'\?",
        ),
        ("[plans]\nseed = 1.5", r"\[plans\] seed: must be a whole number, not 1.5"),
        ("[plans]\nseed = true", r"\[plans\] seed: must be a whole number, not true"),
        ("[wire]\nfrom_homes = 1", r"\[wire\] from_homes: must be true or false, not 1"),
        ("[match]\ngraph = 3", r"\[match\] graph: must be the name of a file, not 3"),
        ("[channels]\ndimensions = 'a'", r"\[channels\] dimensions: must be a list of strings"),
        ("[[ingest]]\ntable = 'users'", r"\[ingest\]: has no files"),
        ("match = 3", r"\[match\]: must be a table, not 3"),
        ("[[match]]", r"\[match\]: must be a table, not a list"),
        ("[data]\n[match]", r"\[data\]: has no folder"),
        ("[data]\nfolder = 'x'", "names no job; hint: jobs are sample, ingest, match"),
        (
            "[sample]\n[ingest]\ntable = 'users'\nfiles = []",
            r"\[ingest\]: cannot be combined with \[sample\]",
        ),
        ("[match", "run.toml: is not TOML"),
    ],
)
def test_a_configuration_that_means_nothing_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        config(tmp_path, text)


def test_a_configuration_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none.toml: cannot be read: no such file"):
        read_config(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[match]", "does not say where the tables are; hint: add [data], or give --data"),
        ("[data]\nfolder = 'x'\n[plan]", "[plan]: 'plan' is not a job"),
    ],
)
def test_the_command_says_what_is_wrong_in_one_line_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    path = tmp_path / "run.toml"
    path.write_text(text)
    assert main(["pipeline", "run", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_the_summary_has_a_line_for_each_job_and_costs_beside_baselines() -> None:
    costs = {"total_cost": 10.0, "packing": 12.5, "clustering": None, "mixing": 11.0}
    reports = [
        JobReport("match", {"publications": 1000, "subscriptions": 20}, {"deliveries": 70}, 1.25),
        JobReport("wire", {"users": 3}, {"wiring": 3}, 0.5, {**costs, "seed": 0}),
    ]
    head, match, wire, total = summary_lines(reports)
    assert head.split() == ["step", "rows", "in", "rows", "out", "seconds", "costs"]
    assert match.split() == ["match", "1,020", "70", "1.2"]
    assert wire.endswith("total cost 10, packing 12.5, clustering -, mixing 11")
    assert total.split() == ["together", "1.8"]
    assert comparison(reports[0]) is None
    assert comparison(reports[1]) == (
        "total_cost",
        10.0,
        {"packing": 12.5, "clustering": None, "mixing": 11.0},
    )


def test_the_summary_says_what_was_not_done() -> None:
    report = JobReport("match", {"publications": 1}, {"deliveries": 7}, 1.0)
    *_, total, left = summary_lines([report], ["plans", "wire"])
    assert total.split() == ["together", "1.0"]
    assert left.split() == ["not", "done", "plans,", "wire"]


def test_a_chain_of_jobs_hands_tables_on(store: Store, tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("user,broker\nann,b1\nbob,b2\n")
    chain = config(
        tmp_path,
        """
        [match]
        [ingest]
        table = "users"
        files = ["users.csv"]
        """,
    )
    events = [
        Publication.parse({"specversion": "1.0", "id": name, "source": "/s", "type": "t"})
        for name in ("7", "8")
    ]
    put(store, "publications", pa.Table.from_batches([to_arrow(events)]))
    nothing = pa.nulls(2, pa.string())
    subscriptions = {
        "subscription_id": ["s1", "s2"],
        "user": ["ann", "bob"],
        "filters": ["[]", '[{"exact": {"id": "7"}}]'],
        "profile": nothing,
        "tolerance": nothing,
    }
    put(store, "subscriptions", pa.table(subscriptions))
    told: list[str] = []
    reports = run(store, chain.steps, finished=lambda report: told.append(report.job))
    assert told == [report.job for report in reports] == ["ingest", "match"]
    rows = store.read("deliveries").to_pylist()
    assert sorted((row["event_id"], row["broker"]) for row in rows) == [
        ("7", "b1"),
        ("7", "b2"),
        ("8", "b1"),
    ]


WIRING = """
    [[ingest]]
    table = "publications"
    files = ["events.jsonl"]
    any_publisher = {kept}
    [[ingest]]
    table = "users"
    files = ["users.csv"]
    [match]
    [channels]
    [wire]
"""


def test_a_publisher_who_is_no_user_is_noticed_before_the_jobs_that_take_long(
    store: Store, tmp_path: Path
) -> None:
    """Users are read first, wherever they stand; who is missed there is refused after it."""
    (tmp_path / "users.csv").write_text("user,broker\nann,b1\n")
    event = '{"specversion":"1.0","id":"1","source":"/s","type":"t","publisher":"%s"}\n'
    (tmp_path / "events.jsonl").write_text(event % "ann" + event.replace('"1"', '"2"') % "eve")
    chain = config(tmp_path, WIRING.format(kept="false"))
    assert [step.options.get("table") for step in chain.steps[:2]] == ["users", "publications"]
    prices = {"user": ["ann"], "costs": [[1.0]]}
    put(store, "access_costs", pa.table(prices))
    put(store, "brokers", pa.table({"broker": ["b1"], "capacity": pa.nulls(1, pa.float64())}))
    put(store, "core_costs", pa.table({"broker": ["b1"], "costs": [[0.0]]}))
    nobody = {"subscription_id": "s1", "user": "bob", "filters": "[]"}
    columns = ("subscription_id", "user", "filters", "profile", "tolerance")
    schema = pa.schema([(name, pa.string()) for name in columns])
    put(store, "subscriptions", pa.Table.from_pylist([nobody], schema))
    told: list[str] = []

    def finished(report: JobReport) -> None:
        told.append(report.job)

    with pytest.raises(BadInput, match="subscriptions: user 'bob' is not in users; hint"):
        run(store, chain.steps, finished=finished)
    assert told == ["ingest", "ingest"]
    put(store, "subscriptions", pa.Table.from_pylist([nobody | {"user": "ann"}], schema))
    # Somebody puts the table there, and not by ingest.
    events = [Publication({"id": name, "source": "/s", "type": "t"}) for name in "xyz"]
    put(store, "publications", to_arrow(events, publishers=["ann", "eve", "dan"]))
    message = "publications: publisher 'dan' is not in users .and 1 more like it.; hint: .*--publ"
    with pytest.raises(BadInput, match=message):
        run(store, [step for step in chain.steps if step.job != "ingest"], finished=finished)
    assert told == ["ingest", "ingest"]
    run(store, chain.steps, finished=finished)
    assert told[2:] == ["ingest", "ingest", "match", "channels", "wire"]
    assert store.frame("publications").count() == 1
    assert store.read("wiring").to_pylist() == [{"user": "ann", "broker": "b1"}]


@pytest.mark.full
def test_every_job_runs_on_a_sample(store: Store, tmp_path: Path) -> None:
    chain = config(
        tmp_path,
        """
        [sample]
        publications = 300
        subscriptions = 60
        users = 40
        brokers = 8
        objects = 4
        seconds = 120
        seed = 7
        [match]
        [channels]
        bins = 4
        [traffic]
        partners = 3
        [rates]
        type = "quote"
        [plans]
        link_cost = "delay"
        [wire]
        time_limit = 1
        [tree]
        objects = "tree-each"
        time_limit = 1
        """,
    )
    reports = run(store, chain.steps)
    assert [report.job for report in reports] == [job for job in STEPS if job != "ingest"]
    by_job = {report.job: report for report in reports}
    for job in ("plans", "wire", "tree"):
        compared = comparison(by_job[job])
        assert compared is not None
        _, cost, baselines = compared
        assert cost is not None
        known = [value for value in baselines.values() if value is not None]
        assert known
        assert all(cost <= value * (1.0 + 1e-9) for value in known)
    assert by_job["plans"].rows_out["plans"] > 0
    assert by_job["wire"].rows_out == {"wiring": 40}
