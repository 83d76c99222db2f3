"""The log of a run in its directory: masked, bounded, never in the way of the run."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from osbench.coordinator.results.storage import run_log
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_log import (
    FollowedFile,
    LogLine,
    RunLog,
    last_lines,
    read_log,
)


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread writes at the end only; a test writes when it wants to."""
    monkeypatch.setattr(run_log, "WRITE_S", 3600.0)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RunDirectory]:
    found = RunDirectory.create(str(tmp_path), "a-run")
    yield found
    found.close()


def texts(directory: RunDirectory) -> list[str]:
    return [line.text for line in read_log(directory)]


def test_what_is_logged_and_said_is_kept_in_order(directory: RunDirectory) -> None:
    with RunLog(directory) as log:
        log.say("run a-run: 2 workloads")
        logging.getLogger("x").warning("a worker is late")
        logging.getLogger("y").critical("the end\nof it")

    said, late, end = read_log(directory)
    assert (said.level, said.source, said.text) == ("INFO", "coordinator", "run a-run: 2 workloads")
    assert (late.level, late.text) == ("WARNING", "a worker is late")
    assert (end.level, end.text) == ("ERROR", "the end\\x0aof it")


def test_secrets_and_codes_of_terminals_are_not(directory: RunDirectory) -> None:
    with RunLog(directory) as log:
        log.say("password=planted-1 \x1b[2J")
        logging.getLogger("x").warning("at http://user:planted-2@host/ %s", {"token": "planted-3"})
        try:
            raise ValueError("api_key=planted-4")
        except ValueError:
            logging.getLogger("x").exception("went wrong")

    content = (directory.path / "log").read_text()
    assert "planted" not in content
    assert "\\u001b" not in content
    assert "went wrong" in content


def test_what_comes_before_the_directory_is_written_once_it_is_there(tmp_path: Path) -> None:
    with RunLog(RunDirectory.of(str(tmp_path), "later")) as log:
        log.say("early")
        log._write()
        directory = RunDirectory.create(str(tmp_path), "later")
        log.say("late")
    directory.close()

    assert texts(directory) == ["early", "late"]


def test_without_a_directory_nothing_is_written(tmp_path: Path) -> None:
    with RunLog(RunDirectory.of(str(tmp_path), "never")) as log:
        log.say("early")

    assert list(tmp_path.iterdir()) == []


def test_the_file_is_bounded_and_its_end_stays(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_log, "MOST_BYTES", 10_000)
    with RunLog(directory) as log:
        for number in range(500):
            log.say(f"sentence {number}")
            if number % 50 == 0:
                log._write()

    assert (directory.path / "log").stat().st_size <= 20_000
    assert texts(directory)[-1] == "sentence 499"


def test_what_is_said_all_at_once_is_bounded(directory: RunDirectory) -> None:
    with RunLog(directory) as log:
        for number in range(1500):
            log.say(f"{number} " + "x" * 9000)

    found = texts(directory)
    assert found[-1].startswith("1499 ")
    assert len(found) <= 1000
    assert max(map(len, found)) <= 2000


def test_a_call_that_is_wrong_harms_nobody(
    directory: RunDirectory, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    with RunLog(directory) as log:
        log.handle(logging.makeLogRecord({"msg": "%d users", "args": ("no",), "levelno": 30}))
        log.say("goes on")

    assert texts(directory) == ["goes on"]


def test_a_disk_that_takes_nothing_harms_nobody(directory: RunDirectory) -> None:
    (directory.path / "log").mkdir()
    with RunLog(directory) as log:
        log.say("lost")

    assert read_log(directory) == []


def test_lines_of_workers_are_followed(directory: RunDirectory, tmp_path: Path) -> None:
    file = tmp_path / "workers.log"
    with RunLog(directory) as log:
        log.follow(file)
        log._write()
        file.write_text("2026-04-01 10:00:00,123 42 ERROR away, token=planted-1\nTraceb")
        log._write()
        with file.open("a") as more:
            more.write("ack of nobody \x1b[2J\nosbench-worker on vm: 2 processes\n")

    one, other, banner = read_log(directory)
    assert (banner.level, banner.source) == ("INFO", "workers")
    assert (one.level, one.source) == ("ERROR", "worker 42")
    assert one.text.startswith("away, ")
    assert "planted" not in one.text
    assert (other.level, other.source) == ("WARNING", "workers")
    assert other.text == "Traceback of nobody \\x1b[2J"


def test_of_very_much_the_end_is_followed(tmp_path: Path) -> None:
    file = tmp_path / "workers.log"
    file.write_text("x" * 99 + "\n")
    followed = FollowedFile(file)
    assert len(followed.fresh()) == 1
    with file.open("a") as more:
        more.write(("y" * 99 + "\n") * 5000 + "the last one\n")

    found = followed.fresh()

    assert "bytes of the workers' log are left out here" in found[0].text
    assert found[-1].text == "the last one"
    assert len(found) < 1000
    assert followed.fresh() == []


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "workers.log")

    assert FollowedFile(tmp_path / "workers.log").fresh() == []


def test_lines_of_others_are_left_out(directory: RunDirectory) -> None:
    good = {"at": 1.0, "level": "INFO", "source": "s", "text": "t"}
    bad = ({**good, "level": "LOUD"}, {**good, "at": "now"}, {"at": 1.0}, [], 7)
    lines = [*map(json.dumps, bad), "{", "\xff", "[" * 5000, json.dumps(good)]
    (directory.path / "log").write_text("\n".join(lines))

    assert texts(directory) == ["t"]


def test_warnings_outlive_sentences() -> None:
    def line(text: str, level: str = "INFO") -> LogLine:
        return LogLine(at=0.0, level=level, source="s", text=text)

    lines = [line("w", "WARNING"), line("i"), line("e", "ERROR"), *(line(str(n)) for n in range(9))]

    assert [one.text for one in last_lines(lines, 2, 1)] == ["e", "7", "8"]
    assert [one.text for one in last_lines(lines[:3], 9, 1)] == ["w", "i", "e"]
