"""Scenario files: what may stand in them, and what is said about the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from distributary.content.content_space import ContentSpace
from distributary.content.dimensions import TextValues
from distributary.errors import BadInput
from distributary.simulator.scenario_file import read_scenario

SCENARIOS = Path(__file__).parents[3] / "scenarios"
SMALL = 'size = "small"\n'


def read(folder: Path, text: str) -> object:
    path = folder / "s.toml"
    path.write_text(text)
    return read_scenario(path)


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_the_scenarios_that_come_along_can_be_read(path: Path) -> None:
    scenario = read_scenario(path)
    assert scenario.name == path.stem
    assert scenario.size == "small" or scenario.overlay.brokers > 64


def test_tables_become_settings(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        SMALL + "[content]\ngraph = 'map'\nformats = ['application/pdf', 'audio/wav']\n"
        "tree = 'discovered'\n[adaptation]\nwindow_s = 5\napproach = 'one-tree'\n"
        "[settings.membership]\nperiod_s = 1\n[settings.streams]\npulse_s = 2\n"
        "[space]\ndimensions = [{name = 'type', buckets = 8}]\n"
        "[[fault]]\nkind = 'crash'\nat_s = 3\n"
    )
    scenario = read_scenario(path)
    settings = scenario.settings
    assert scenario.name == "mine"
    assert settings.graph_for(10**6).names == ("application/pdf", "audio/wav")
    assert settings.content.tree == "discovered"
    assert settings.adaptation.window_s == 5.0
    assert (settings.streams.approach, settings.streams.pulse_s) == ("one-tree", 2.0)
    assert settings.membership.period_s == 1.0
    assert isinstance(settings.membership.period_s, float)
    assert settings.space.cell_count == 9
    assert [fault.kind for fault in scenario.faults] == ["crash"]


def test_brokers_use_the_content_space_in_a_file(tmp_path: Path) -> None:
    """As `pipeline channels` writes it; looked for beside the scenario, like other files."""
    space = ContentSpace((TextValues("type", ("rain", "wind")),))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "space.json").write_text(json.dumps(space.document()))
    path = tmp_path / "mine.toml"
    path.write_text(SMALL + 'space = "data/space.json"\n')
    assert read_scenario(path).settings.space == space
    (tmp_path / "data" / "space.json").write_text('{"dimensions": [{"name": "type"}]}')
    with pytest.raises(BadInput, match=r"space: .*space\.json: dimensions\[0\]: must have"):
        read_scenario(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"size: is missing; hint: write size = \"small\""),
        ('size = "huge"', r"size: is the string 'huge'"),
        (SMALL + "color = 1", r"color: 'color' is not a table or field of a scenario"),
        (SMALL + "[overlay]\nbroker = 5", r"overlay.broker: .*did you mean 'brokers'\?"),
        (SMALL + "[overlay]\nbrokers = 65", r"overlay.brokers: is 65, and a small .* most 64"),
        (SMALL + "[overlay]\nbrokers = 0", r"overlay.brokers: is 0, and must be from 1"),
        (SMALL + "[overlay]\nbrokers = 2.5", r"overlay.brokers: must be a whole number, not 2.5"),
        (SMALL + "[overlay]\nbrokers = true", r"overlay.brokers: must be a whole number, not true"),
        (SMALL + "[overlay]\nloss = 1.5", r"overlay.loss: is 1.5, and must be from 0 to 1"),
        (SMALL + "[overlay]\nloss = nan", r"overlay.loss: is nan"),
        (SMALL + "[overlay]\ntopology = 'ring'", r"overlay.topology: 'ring' is not one of"),
        (SMALL + "[overlay]\ntopology = 'gml'", r"overlay.file: is missing"),
        (SMALL + "[overlay]\nfile = 'x'", r"overlay.file: is not for the topology unit-square"),
        (SMALL + "overlay = 3", r"overlay: must be a table, not 3"),
        (SMALL + "[content]\ngraph = 'nap'", r"content.graph: 'nap' is neither"),
        (SMALL + "[content]\ngraph = 'map'\nformats = ['x/y']", r"content.formats\[0\]: 'x/y'"),
        (SMALL + "[content]\ngraph = 'map'\nsource = 'x/y'", r"content.source: 'x/y' is not"),
        (SMALL + "[content]\nmethod = 'luck'", r"content.method: 'luck' is not a method"),
        (SMALL + "[content]\nmegabytes = [1]", r"content.megabytes: has 1 entries"),
        (SMALL + "[content]\nmegabytes = [2, 1]", r"content.megabytes: has '2' before '1'"),
        (
            SMALL + "[content]\ngraph = 'map'\nmegabytes = [1, 70]",
            r"content.megabytes: is up to 70, and brokers take 67.1\d* MB; hint: raise",
        ),
        (
            SMALL + "[settings.content]\ncontent_bytes_max = 0",
            r"settings.content.content_bytes_max: is 0; it must be from 1",
        ),
        (SMALL + "[workload]\npublications = -1", r"workload.publications: is -1"),
        (SMALL + "[workload]\nbegin_s = 90", r"workload.begin_s: is after the end at 60 s"),
        (
            SMALL + "[workload]\npublications = 1\npublishers = 0",
            r"workload.publishers: is 0, and there are publications",
        ),
        (SMALL + "[workload]\ndivergences = ['far']", r"workload.divergences\[0\]: 'far'"),
        (SMALL + "[workload]\ndivergences = []", r"workload.divergences: is empty"),
        (SMALL + "[workload]\nadvertise = 1", r"workload.advertise: must be true or false, not 1"),
        (SMALL + "[workload.shift]\nat = 1", r"workload.shift.at: .*did you mean 'at_s'\?"),
        (SMALL + "[adaptation]\ntua = 1", r"adaptation.tua: .*did you mean 'tau'\?"),
        (SMALL + "[settings.member]\nx = 1", r"settings.member: .*did you mean 'membership'\?"),
        (SMALL + "[settings.links]\nretry = 1", r"settings.links.retry: .*mean 'retry_s'\?"),
        (SMALL + "settings = 1", r"settings: must be a table, not 1"),
        (SMALL + "fault = 1", r"fault: must be a list of tables; hint: write \[\[fault\]\]"),
        (SMALL + "[[fault]]\nat_s = 1", r"fault\[0\].kind: is missing"),
        (SMALL + "[[fault]]\nkind = 'crush'", r"fault\[0\].kind: 'crush' .*did you mean 'crash'\?"),
        (
            SMALL + "[[fault]]\nkind = 'crash'\nat_s = 9\nuntil_s = 8",
            r"fault\[0\].until_s: is before at_s, which is 9",
        ),
        (
            SMALL + "[[fault]]\nkind = 'crash'\nbrokers = [3, 99]",
            r"fault\[0\].brokers\[1\]: is 99, and the last of them is 31",
        ),
        (SMALL + "[[fault]]\nkind = 'mix'", r"fault\[0\].until_s: is missing"),
        (SMALL + "[space]\ndimensions = []", r"space: dimensions"),
        (SMALL + "space = 1", r"space: must be a table or the name of a file, not 1"),
        (SMALL + "space = 'no.json'", r"space: .*no\.json: does not exist"),
        (SMALL + "space = '.'", r"space: .*: is a directory, not a file"),
        ("size =", r"document: is not TOML"),
        (SMALL + "x = " + "[" * 3000 + "]" * 3000, r"document: is nested too deeply"),
        (SMALL + f"[overlay]\nbrokers = 1{'0' * 5000}", r"document: has a number of thousands"),
        (
            SMALL + f"[overlay]\nbrokers = 1{'0' * 400}",
            r"overlay.brokers: is an integer of hundreds of digits, and must be from 1 to 4,096",
        ),
        (SMALL + "[overlay]\nbrokers = 1000000", r"overlay.brokers: is 1,000,000, and must be"),
        (SMALL + '"\\u001b[31m" = 1', r"'\\x1b\[31m': '\\x1b\[31m' is not a table"),
        (SMALL + '[overlay]\n"a\\nb" = 1', r"overlay\.'a\\nb': 'a\\nb' is not a field"),
        (
            SMALL + "[overlay]\ntopology = 'gml'\nfile = 'no.gml'",
            r"overlay.file: 'no.gml' is no file beside the scenario",
        ),
        (SMALL + "[content]\ngraph = '.'", r"content.graph: .*: is a directory"),
        (
            SMALL + "[content]\nnewer_formats = ['a/b']\nnewer_share = 0.5",
            r"content.newer_formats: is given without a graph",
        ),
        (
            SMALL + "[content]\ngraph = 'map'\nnewer_share = 0.5",
            r"content.newer_share: is 0.5 beside 0 formats",
        ),
        (
            SMALL + "[content]\ngraph = 'map'\nnewer_formats = ['application/pdf']",
            r"content.newer_share: is 0 beside 1 format",
        ),
        (
            SMALL + "[content]\ngraph = 'map'\nnewer_share = 1.0\nnewer_formats = ['x/y']",
            r"content.newer_formats\[0\]: 'x/y' is not",
        ),
        (SMALL + "[workload]\ntenants = 0", r"workload.tenants: is 0"),
        (
            SMALL + "[workload]\ntenants = 5",
            r"workload.publishers: is 4, and each of 5 tenants needs 1",
        ),
        (
            SMALL + "[workload]\ntenants = 2\ntwins = 0.5\npublishers = 3",
            r"workload.publishers: is 3, and each of 2 tenants needs 2",
        ),
        (
            SMALL + "[workload]\ntenants = 2\nobjects = 1",
            r"workload.tenants: means nothing for streams",
        ),
        (SMALL + "[content]\nformats = ['a/b']", r"content.formats: is given without a graph"),
        (
            SMALL + "[workload]\nrestarts = 1\npublishers = 0",
            r"workload.publishers: is 0, and there are restarts",
        ),
        (
            SMALL + "[workload]\nforeign = 0.5",
            r"workload.foreign: needs two tenants and publishers; hint: write tenants = 2",
        ),
        (
            SMALL + "[workload]\naway = 0.5\naway_s = [5, 60]",
            r"workload.away_s: is up to 60 s, and clients are active for 50 s",
        ),
        (SMALL + "[workload]\naway_s = [20, 5]", r"workload.away_s"),
        (
            SMALL + "[workload]\nstorm_publications = 1\nstorm_at_s = 61",
            r"workload.storm_at_s: is after the end at 60 s",
        ),
        (
            SMALL + "[workload.shift]\nat_s = 61",
            r"workload.shift.at_s: is after the end at 60 s",
        ),
        (SMALL + "[workload.shift]\nload = 0", r"workload.shift.load: is 0, and must be from"),
        (SMALL + "[adaptation]\nround_s = 0", r"adaptation.round_s: is 0, and must be from 0.001"),
        (
            SMALL + "[settings.membership]\nperiod_s = 0",
            r"settings.membership.period_s: is 0, and must be at least 0.001",
        ),
        (
            SMALL + "[settings.links]\nretry_s_max = 0",
            r"settings.links.retry_s_max: is 0, and must be at least 0.001",
        ),
        (
            SMALL + "[settings.content]\nretention_s = 8",
            r"settings.content.retention_s: is 8, and clients repeat .* after 8 s; hint: keep",
        ),
        (
            SMALL + "[settings.content]\nmethod = 'luck'",
            r"settings.content.method: 'luck' is not a method of placement",
        ),
        (SMALL + "[settings.content]\ntree = 'oak'", r"settings.content.tree: 'oak' is not one"),
        (
            SMALL + "[settings.streams]\napproach = 'one-three'",
            r"settings.streams.approach: .*did you mean 'one-tree'\?",
        ),
    ],
)
def test_whatever_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=rf"s\.toml: {message}"):
        read(tmp_path, text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nothing\.toml: does not exist"):
        read_scenario(tmp_path / "nothing.toml")


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="is not text in UTF-8"):
        read_scenario(path)


def test_a_graph_may_be_a_file_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(
        '{"formats": [{"name": "a/b", "size": {"fixed": 1, "per_mb": 0}}], "conversions": []}'
    )
    path = tmp_path / "s.toml"
    path.write_text(SMALL + "[content]\ngraph = 'g.json'\n")
    assert read_scenario(path).settings.graph_for(5).names == ("a/b",)
