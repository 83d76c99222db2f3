"""`init --from-access-log`: a task and its arrivals, and what the command says of a log."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from osbench.common.errors import UsageError
from osbench.coordinator.front.cli import main
from osbench.coordinator.front.cli.commands.init import ReadingProgress
from osbench.coordinator.task.taskfile.template import render
from osbench.edges.recordings import log_reader
from osbench.edges.recordings.arrival_file import ArrivalFile
from osbench.edges.recordings.log_reader import LogReader

LINE = '10.0.0.9 - ann [01/Mar/2026:12:{:02}:{:02} +0000] "{} HTTP/1.1" {} 17 "-" "curl/8.1"\n'


def line(second: int, request: str, status: int = 200) -> str:
    return LINE.format(second // 60, second % 60, request, status)


LOG = (
    line(3, "GET /items?token=geheim")
    + "garbage\n"
    + line(3, "GET /users/4711/orders/1b2c3d4e5f60718293a4b5c6d7e8f901")
    + line(1, "HEAD /")
    + line(70, "GET /gone", 404)
    + line(70, "POST /orders", 201)
    + line(71, "GET /items/1?mail=ann@example.com")
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "access.log").write_text(LOG, "utf-8")
    return tmp_path


def init(*options: str) -> Result:
    return CliRunner().invoke(main, ["init", "load.yaml", "--from-access-log", *options])


def task(here: Path, **args: Any) -> dict[str, Any]:
    """The document of the task."""
    rendered, problems = render((here / "load.yaml").read_text("utf-8"), str(here), args)
    assert not problems
    found: dict[str, Any] = yaml.safe_load(rendered)
    return found


def flow(here: Path, **args: Any) -> dict[str, Any]:
    found: dict[str, Any] = task(here, **args)["subtasks"][0]["scenario"]["HttpFlow.run"]
    return found


def test_a_log_becomes_a_mix_and_its_arrivals(here: Path) -> None:
    done = init("access.log", "--base", "http://127.0.0.1:9/shop")

    assert done.exit_code == 0, done.output
    assert task(here)["subtasks"][0]["runner"] == {
        "replay": {"file": "load.arrivals", "timeout": "30s"}
    }
    made = flow(here, user_id=7)
    assert made["base"] == "http://127.0.0.1:9/shop"
    steps = {branch["name"]: branch["steps"] for branch in made["mix"]}
    assert [branch["weight"] for branch in made["mix"]] == [1] * 5
    assert steps == {
        name: [{"name": name, **more}]
        for name, more in {
            "GET /items": {"path": "/items"},
            "GET /users/[id]/orders/[id]": {"path": "/users/7/orders/1"},
            "HEAD /": {"method": "HEAD", "path": "/"},
            "GET /gone": {"path": "/gone", "expect": 404},
            "GET /items/[id]": {"path": "/items/1"},
        }.items()
    }
    read = ArrivalFile(here / "load.arrivals")
    names = [read.names[at] for at in read.positions(0, 5)]
    assert names == [
        *("HEAD /", "GET /items", "GET /users/[id]/orders/[id]", "GET /gone", "GET /items/[id]")
    ]
    assert read.instants(0, 5).tolist() == [
        *(500_000, 2_250_000, 2_750_000, 69_500_000, 70_500_000)
    ]


def test_what_was_found_is_said(here: Path) -> None:
    said = init("access.log").output

    assert "nginx or Apache (combined), 7 lines, 1 of them unreadable (line 2 first)" in said
    assert "methods: GET 66.7 %, HEAD 16.7 %, POST 16.7 %" in said
    assert "arrivals: 5 in 71 s from 2026-03-01T12:00:01.000Z, 0.0704/s on average, 2 in" in said
    assert "  20.0 %  GET /users/[id]/orders/[id]" in said
    assert "left out: POST, whose bodies are not in the log (1)" in said
    assert "wrote load.arrivals; keep it next to the task" in said


def test_nothing_personal_is_written(here: Path) -> None:
    done = init("access.log", "--all-methods")

    kept = (here / "load.yaml").read_bytes() + (here / "load.arrivals").read_bytes()
    kept += "".join(ArrivalFile(here / "load.arrivals").names).encode() + done.output.encode()
    for personal in ("geheim", "4711", "1b2c3d", "ann", "10.0.0.9", "curl", "example"):
        assert personal.encode() not in kept
    assert "(2 requests had one)" in (here / "load.yaml").read_text("utf-8")


def test_all_methods_have_an_empty_body(here: Path) -> None:
    done = init("access.log", "--all-methods")

    steps = {branch["name"]: branch["steps"] for branch in flow(here)["mix"]}
    assert "left out" not in done.output
    assert steps["POST /orders"] == [{"name": "POST /orders", "method": "POST", "path": "/orders"}]


def test_a_compressed_log_gives_the_same_task(here: Path) -> None:
    init("access.log")
    plain = (here / "load.yaml").read_text("utf-8"), (here / "load.arrivals").read_bytes()
    (here / "load.yaml").unlink()
    (here / "load.arrivals").unlink()
    # rotated logs are often concatenated
    halves = LOG.splitlines(keepends=True)
    packed = [gzip.compress("".join(part).encode()) for part in (halves[:3], halves[3:])]
    (here / "access.log").write_bytes(b"".join(packed))

    said = init("access.log").output

    assert "(combined), gzip, 7 lines" in said
    assert plain == ((here / "load.yaml").read_text("utf-8"), (here / "load.arrivals").read_bytes())


def test_a_readable_line_behind_many_that_are_cut_is_found(here: Path) -> None:
    cut = line(1, "GET /" + "a" * 8000).partition(" HTTP")[0] + "\n"
    (here / "access.log").write_text(cut * 50 + line(2, "GET /a"))

    said = init("access.log")

    assert said.exit_code == 0, said.output
    assert "51 lines, 50 of them unreadable (line 1 first)" in said.output


@pytest.mark.parametrize(("begin", "filler"), [("", b"\0"), ("", b"x\n"), (LOG, b"\0")])
def test_what_unpacks_without_an_end_is_given_up(
    here: Path, monkeypatch: pytest.MonkeyPatch, begin: str, filler: bytes
) -> None:
    monkeypatch.setattr(log_reader, "_BLOCK", 1 << 10)
    monkeypatch.setattr(log_reader, "_LONGEST", 1 << 10)
    monkeypatch.setattr(log_reader, "_PATIENCE", 1 << 16)
    (here / "access.log").write_bytes(gzip.compress(begin.encode() + filler * 4_000_000, mtime=0))
    seen: list[int] = []
    reader = LogReader(Path("access.log"), {}, lambda read, size, lines: seen.append(lines))

    with pytest.raises(UsageError, match=r"is (not an access log|longer than)"):
        list(reader.read())

    assert 0 < len(seen) < 200
    assert reader.form == ""


def test_a_long_file_shows_how_far_it_is_read(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reader, "_BLOCK", 200)
    monkeypatch.setattr(ReadingProgress, "EVERY_S", 0.0)

    said = init("access.log").output

    shares = [int(one) for one in re.findall(r"reading access.log: (\d+)%, \d+ lines?\n", said)]
    assert shares == sorted(shares)
    assert shares[0] < 100 == shares[-1]


#: Without the time of packing, which would make other names of tests in each process.
PACKED = gzip.compress(LOG.encode(), mtime=0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "access.log is empty"),
        (b"\n\n", "access.log is not an access log: no line"),
        (b"a\nb\n", "access.log is not an access log: no line (line 1 is the first) is in the"),
        (b"\x00" * 3_000_000, "access.log is not an access log"),
        (PACKED[:-12], "access.log is damaged after line"),
        (PACKED[:40] + b"x" * 40, "access.log is damaged after line"),
        (line(1, "POST /a").encode(), "left out: POST, whose bodies are not in the log (1)."),
        (line(1, "OPTIONS *").encode(), "left out: requests without a path (1)."),
    ],
)
def test_logs_without_a_load_are_refused(here: Path, content: bytes, said: str) -> None:
    (here / "access.log").write_bytes(content)

    done = init("access.log")

    assert done.exit_code == 2
    assert said in done.output
    assert [one.name for one in here.iterdir()] == ["access.log"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["none.log"], "cannot read none.log: No such file"),
        (["."], "cannot read .: Is a directory"),
        (["/dev/zero"], "cannot read /dev/zero: no regular file"),
        (["access.log", "--base", "ftp://x"], "--base must begin with http:// or https://"),
        (["access.log", "--base", "http://x?a"], "--base: paths come after base"),
        (["access.log", "--log-field", "when=ts"], "--log-field needs one of time, method, path"),
        (["access.log", "--log-field", "time="], "--log-field needs one of time, method, path"),
        (["access.log", "--log-field", "time=ts"], "no line is JSON with a time, a method and a"),
    ],
)
def test_wrong_options_are_refused(here: Path, options: list[str], said: str) -> None:
    done = init(*options)

    assert done.exit_code == 2
    assert said in done.output
    assert not (here / "load.yaml").exists()
    assert not (here / "load.arrivals").exists()


def test_files_that_exist_are_kept(here: Path) -> None:
    (here / "load.arrivals").write_text("mine", "utf-8")

    done = init("access.log")

    assert done.exit_code == 2
    assert "load.arrivals exists; give another name" in done.output
    assert (here / "load.arrivals").read_text("utf-8") == "mine"
    assert not (here / "load.yaml").exists()


def test_hostile_paths_make_a_task_that_loads(here: Path) -> None:
    paths = [
        "/{{7*7}}",
        "/{%x%}/{saved.a}",
        "/a{#b#}",
        "/x/{user.number}",
        "/'quoted'",
        "/a/../b",
        "//x",
    ]
    (here / "access.log").write_text("".join(line(1, f"GET {one}") for one in paths), "utf-8")

    done = init("access.log")
    checked = CliRunner().invoke(main, ["validate", "load.yaml"])

    assert done.exit_code == 0, done.output
    assert checked.exit_code == 0, checked.output
    assert "49" not in (here / "load.yaml").read_text("utf-8")


@pytest.mark.usefixtures("here")
def test_a_folder_that_is_not_there_is_one_message():
    refused = CliRunner().invoke(main, ["init", "none/t.yaml", "--from-access-log", "access.log"])

    assert refused.exit_code == 2
    assert "cannot write a file in none: No such file or directory" in refused.output
    assert len(refused.output.splitlines()) == 1
