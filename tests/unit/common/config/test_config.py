"""Configuration files: found, read, and refused with every problem in one message."""

import subprocess
import sys
from pathlib import Path

import pytest

from helpers.readme import REPOSITORY
from osbench.common.config import config
from osbench.common.config.options import OPTIONS
from osbench.common.errors import ConfigError

SAMPLE = REPOSITORY / "etc" / "osbench.conf"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def write(tmp_path):
    def write(text, name="osbench.conf"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return str(path)

    return write


def refusal(*files):
    with pytest.raises(ConfigError) as caught:
        config.load(files)
    return str(caught.value)


def test_an_empty_file_leaves_every_default(home, write):
    conf = config.load([write("")])

    assert conf.data_dir == f"{home}/.osbench"
    assert conf.log_level == "WARNING"
    assert conf.security.key_file == f"{home}/.osbench/keys"
    assert conf.messaging.redis_url is None
    assert conf.messaging.broker_url is None
    assert conf.benchmark.enable_profiler is True
    assert conf.benchmark.profiler_sample_rate == 1.0
    assert conf.worker.virtual_users == 256
    assert conf.worker.plugin_path == []
    assert conf.coordinator.worker_lost_after_s == 3.0


def test_the_sample_file_is_what_the_options_say():
    written = subprocess.run(
        [sys.executable, "-m", "osbench.common.config.config"],
        check=True,
        capture_output=True,
        text=True,
    )

    assert SAMPLE.read_text() == written.stdout == config.sample()


def test_the_sample_file_with_its_comments_opened_reads_as_the_defaults(home, write):
    lines = SAMPLE.read_text().splitlines()
    opened = [line[1:] if line.startswith("#") and line[1] != " " else line for line in lines]

    conf = config.load([write("\n".join(opened))])

    defaults = config.load([write("", "empty.conf")])
    for group, options in OPTIONS.items():
        for option in options:
            section = (conf, defaults) if group == "DEFAULT" else (conf[group], defaults[group])
            assert section[0][option.dest] == section[1][option.dest], option.dest


def test_every_option_explains_itself():
    for options in OPTIONS.values():
        for option in options:
            assert option.help.endswith("."), option.dest


def test_values_of_a_file_are_read_with_their_types(home, write):
    conf = config.load(
        [
            write(
                "[DEFAULT]\ndata_dir = ~/elsewhere\nlog_level = debug\n"
                "[messaging]\nredis_url = rediss://bench:p$$w@redis.example:6379/2\n"
                "[worker]\nplugin_path = ~/plugins, /opt/more.py\nship_interval_s = 1\n"
            )
        ]
    )

    assert conf.data_dir == f"{home}/elsewhere"
    assert conf.security.key_file == f"{home}/elsewhere/keys"
    assert conf.log_level == "DEBUG"
    assert conf.messaging.redis_url == "rediss://bench:p$w@redis.example:6379/2"
    assert conf.worker.plugin_path == [f"{home}/plugins", "/opt/more.py"]
    assert conf.worker.ship_interval_s == 1.0


def test_later_files_win(write):
    first = write("[worker]\nlabel = a\nprocesses = 3\n", "first.conf")
    second = write("[worker]\nlabel = b\n", "second.conf")

    conf = config.load([first, second])

    assert (conf.worker.label, conf.worker.processes) == ("b", 3)


def test_the_file_in_the_home_directory_is_found_and_a_named_one_replaces_it(home, write):
    write("[worker]\nlabel = home\n", ".osbench/osbench.conf")
    named = write("[worker]\nprocesses = 2\n", "named.conf")

    found = config.load()
    replaced = config.load([named])

    assert found.worker.label == "home"
    assert (replaced.worker.label, replaced.worker.processes) == ("", 2)


def test_the_home_directory_comes_before_etc(home):
    assert config.search_path() == [
        home / ".osbench" / "osbench.conf",
        Path("/etc/osbench/osbench.conf"),
    ]


def test_two_configurations_do_not_share_values(write):
    first = config.load([write("[worker]\nlabel = a\n", "a.conf")])
    second = config.load([write("[worker]\nlabel = b\n", "b.conf")])

    assert (first.worker.label, second.worker.label) == ("a", "b")


def test_the_arguments_of_the_process_are_not_read(write, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["osbench-coord", "--config-file", "/nowhere"])

    assert config.load([write("")]).worker.label == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[worker]\nproceses = 4", "[worker] proceses = '4': unknown option; did you mean proc"),
        ("[worker]\nlag_limit_s = 4", "[worker] lag_limit_s = '4': unknown option; it belongs in"),
        ("[worker]\nx = 4", "[worker] x = '4': unknown option"),
        ("[wroker]\nprocesses = 4", "[wroker]: unknown section"),
        ("[worker]\nprocesses = four", "[worker] processes = 'four': must be an integer"),
        ("[worker]\nprocesses = -1", "[worker] processes = '-1': "),
        (
            "[worker]\nship_interval_s = soon",
            "ship_interval_s = 'soon': must be seconds, or a duration",
        ),
        ("[worker]\nship_interval_s = nan", "ship_interval_s = 'nan': must be a finite number"),
        ("[worker]\nship_interval_s = inf", "ship_interval_s = 'inf': must be a finite number"),
        ("[benchmark]\nprofiler_sample_rate = 1.01", "profiler_sample_rate = '1.01': "),
        ("[benchmark]\nprofiler_sample_rate = automatic", "must be a number"),
        ("[traces]\nkeep_share = 2", "keep_share = '2': "),
        ("[benchmark]\nenable_profiler = perhaps", "enable_profiler = 'perhaps': "),
        ("[DEFAULT]\nlog_level = LOUD", "[DEFAULT] log_level = 'LOUD': "),
        ("[DEFAULT]\ndata_dir =", "[DEFAULT] data_dir = '': must not be empty"),
        ("[DEFAULT]\ndata_dir = $home/x", "data_dir = '$home/x': names an unknown option after $"),
        ("nonsense", "line 1: "),
        ("processes = 1", "line 1: "),
    ],
)
def test_a_mistake_is_reported_with_file_option_and_value(write, text, message):
    path = write(text)

    assert f"{path}: " in refusal(path)
    assert message in refusal(path)


def test_all_problems_of_all_files_are_reported_at_once(write, tmp_path):
    first = write("[worker]\nprocesses = x\nlable = y\n", "first.conf")
    second = write("[nowhere]\na = 1\n[benchmark]\nmax_lag_s = z\n", "second.conf")
    absent = str(tmp_path / "absent.conf")

    message = refusal(first, second, absent)

    assert "5 problems" in message
    for part in ("processes = 'x'", "lable = 'y'", "[nowhere]", "max_lag_s = 'z'", "No such file"):
        assert part in message


@pytest.mark.parametrize(
    "text",
    [
        "[messaging]\nredis_url = http://u:hidden-word@h",
        "[messaging]\nredis_url = hidden-word",
        "[messaging]\nbroker_url = redis://u:$hidden-word@h",
        "[messaging]\nredis_ulr = redis://u:hidden-word@h",
        "[messaging]\nserver = redis://u:hidden-word@h",
        "[DEFAULT]\npassword = hidden-word",
        "[messaging]\nredis_url redis://u:hidden-word@h",
    ],
)
def test_secrets_are_not_repeated(write, text):
    message = refusal(write(text))

    assert "hidden-word" not in message


def test_a_secret_in_a_place_that_is_not_one_is_still_located(write):
    path = write("[messaging]\nredis_url = http://h\n")

    assert f"{path}: [messaging] redis_url = ***: must begin with one of redis://" in refusal(path)


def test_a_refused_value_of_the_environment_names_its_variable(write, monkeypatch):
    monkeypatch.setenv("OS_WORKER__PROCESSES", "all")

    assert "environment variable OS_WORKER__PROCESSES: [worker] processes = 'all'" in refusal(
        write("")
    )


def test_a_file_that_is_not_text_is_refused(tmp_path):
    path = tmp_path / "osbench.conf"
    path.write_bytes(b"[worker]\nlabel = \xff\xfe\n")

    assert f"{path}: is not text" in refusal(str(path))


def test_a_directory_is_refused(tmp_path):
    assert f"{tmp_path}: Is a directory" in refusal(str(tmp_path))


def test_durations_have_units(write):
    conf = config.load([write("[benchmark]\nlag_limit_s = 250ms\n[messaging]\npatience_s = 5m\n")])

    assert (conf.benchmark.lag_limit_s, conf.messaging.patience_s) == (0.25, 300)
    assert "a duration such as 30s, 5m or 1h30m" in refusal(
        write("[messaging]\npatience_s = 5 minutes\n")
    )
