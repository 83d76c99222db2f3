"""The commands `deployment` and `keys`, as a user meets them."""

import json
import stat

import click
import pytest
from click.testing import CliRunner

from helpers.corpus import corpus
from osbench.common.protocol.keyring import Keyring
from osbench.coordinator.front.cli.base import CommandSettings, with_settings
from osbench.coordinator.front.cli.commands.deployment import deployment
from osbench.coordinator.front.cli.commands.keys import keys
from osbench.coordinator.front.cli.group import Group, config_option

CLOUD = {
    "openstack": {
        "auth_url": "http://cloud.example:5000/v3",
        "admin": {"username": "admin", "password": "pw-hidden", "project_name": "ops"},
        "profiler_hmac_key": "key-hidden",
        "profiler_conn_str": "redis://:pw-hidden@traces.example",
    }
}
SHOP = {"osbench": {"services": {"shop": "http://shop.example"}}}


@click.group(cls=Group)
@config_option
def top():
    """A top-level group, as the real one is."""


top.add_command(deployment)
top.add_command(keys)


@top.command()
@with_settings
def label(settings):
    click.echo(settings.conf.worker.label)


@top.command()
@click.argument("kind")
def fail(kind):
    raise {"interrupt": KeyboardInterrupt, "disk": OSError(28, "No space left on device")}[kind]


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("OSPROFILER_HMAC_KEY", "OSPROFILER_CONN_STR", "OS_AUTH_URL"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@pytest.fixture
def run(home):
    def run(*args, code=0):
        result = CliRunner().invoke(top, args)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result

    return run


@pytest.fixture
def file(home):
    def file(content, name="file.json"):
        path = home / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    return file


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("more", [[], ["--from-env"]])
def test_a_record_without_a_name_is_a_mistake_of_usage(run, more):
    assert "Missing option '--name'" in run("deployment", "create", *more, code=2).stderr


def test_records_are_created_listed_shown_used_and_deleted(run, file):
    created = run("deployment", "create", "--name", "lab", "--file", file(CLOUD))
    run("deployment", "create", "--name", "shop", "--file", file(SHOP))

    listed = run("deployment", "list").stdout.splitlines()
    used = run("deployment", "use", "shop")
    shown = run("deployment", "show")
    run("deployment", "delete", "shop")
    left = run("deployment", "list").stdout

    assert "lab, now in use" in created.stdout
    assert listed[1].split()[:3] == ["*", "lab", "openstack"]
    assert listed[1].split()[3:] == ["http://cloud.example:5000/v3", "1", "set"]
    assert listed[2].split()[:3] == ["shop", "osbench", "shop.example:80"]
    assert "shop is now in use" in used.stdout
    assert "name: shop" in shown.stdout
    assert "shop" not in left


def test_every_sample_of_rally_is_taken_but_the_one_that_is_no_json(run):
    samples = {path.stem: path for path in sorted((corpus() / "deployments").iterdir())}
    broken = samples.pop("existing-api")

    for name, path in samples.items():
        run("deployment", "create", "--name", name, "--file", str(path))
        shown = run("deployment", "show", name).stdout
        assert json.loads(path.read_text())["openstack"]["auth_url"] in shown
    refused = run("deployment", "create", "--name", "api", "--file", str(broken), code=2)

    assert len(samples) == 5
    assert "existing-api.json: line 13, column 9: is not JSON: Expecting ',' delimiter" in (
        refused.stderr
    )


def test_no_secret_is_ever_shown(run, file):
    said = [
        run("deployment", "create", "--name", "lab", "--file", file(CLOUD)).output,
        run("deployment", "list").output,
        run("deployment", "show").output,
        run("deployment", "show", "lab", "--json").output,
    ]

    assert "hidden" not in "".join(said)
    shown = json.loads(said[-1])
    assert shown["name"] == "lab"
    assert shown["spec"]["openstack"]["admin"]["username"] == "admin"


def test_a_record_comes_from_the_environment(run, monkeypatch):
    monkeypatch.setenv("OSPROFILER_HMAC_KEY", "key-hidden")

    run("deployment", "create", "--name", "env", "--from-env")

    shown = json.loads(run("deployment", "show", "env", "--json").stdout)
    assert shown["spec"] == {"osbench": {"profiler_hmac_key": "***"}}


def test_the_data_directory_of_the_configuration_is_used(run, file, home):
    conf = file(f"[DEFAULT]\ndata_dir = {home}/elsewhere\n", "osbench.conf")

    run("--config-file", conf, "deployment", "create", "--name", "lab", "--file", file(SHOP))
    listed = run("deployment", "list", "--config-file", conf)

    assert "lab" in listed.stdout
    assert mode(home / "elsewhere" / "deployments" / "lab.json") == 0o600


def test_later_configuration_files_win_wherever_they_are_named(run, file):
    first = file("[worker]\nlabel = one\n", "1.conf")
    second = file("[worker]\nlabel = two\n", "2.conf")

    assert run("--config-file", first, "label", "--config-file", second).stdout == "two\n"
    assert run("label", "--config-file", second, "--config-file", first).stdout == "one\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give --file FILE, --cloud NAME or --from-env"),
        (["--from-env", "--file", "x.json"], "--file and --from-env cannot be combined"),
    ],
)
def test_create_takes_a_file_or_the_environment(run, options, message):
    said = run("deployment", "create", "--name", "lab", *options, code=2)

    assert message in said.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["deployment", "show"], "no deployment is in use"),
        (["deployment", "show", "lab"], "no deployment has the name lab"),
        (["deployment", "use", "../x"], "cannot name a deployment"),
        (["deployment", "create", "--name", "x", "--file", "absent.json"], "No such file"),
        (["deployment", "create", "--name", "x", "--from-env"], "OS_AUTH_URL is not set"),
        (["deployment", "frobnicate"], "No such command"),
        (["deployment", "list", "--config-file", "absent.conf"], "absent.conf: No such file"),
        (["keys", "new", "--rotate"], "osbench-coord keys new"),
        (["keys", "new", "--rotate", "--force"], "--rotate keeps old keys, --force drops them"),
    ],
)
def test_bad_input_ends_with_one_message_and_exit_code_2(run, args, message):
    said = run(*args, code=2)

    assert message in said.stderr
    assert said.stdout == ""


def test_an_interrupt_ends_with_130(run):
    assert run("fail", "interrupt", code=130).stderr.strip() == "interrupted"


def test_an_error_of_the_system_is_one_message(run):
    assert run("fail", "disk", code=2).stderr == "Error: [Errno 28] No space left on device\n"


def test_configuration_is_not_read_before_it_is_needed(run, file):
    broken = file("[worker]\nlable = x\n", "broken.conf")

    run("--config-file", broken, "deployment", "--help")
    said = run("--config-file", broken, "deployment", "list", code=2)

    assert "did you mean label?" in said.stderr


def test_check_prints_what_failed_and_exits_with_1(run, file):
    spec = {"osbench": {"services": {"shop": "http://127.0.0.1:1"}, "profiler_hmac_key": "k"}}
    run("deployment", "create", "--name", "shop", "--file", file(spec))

    said = run("deployment", "check", "--timeout", "5", code=1)

    lines = [line.split() for line in said.stdout.splitlines()]
    assert ["services.shop", "failed"] in [line[:2] for line in lines]
    assert ["profiler", "key", "ok"] in [line[:3] for line in lines]


def test_check_exits_with_0_where_nothing_failed(run, file):
    run("deployment", "create", "--name", "empty", "--file", file({"osbench": {}}))

    assert "not set" in run("deployment", "check", "empty").stdout


def test_new_keys_are_written_privately_and_never_shown(run, home):
    said = run("keys", "new")

    path = home / ".osbench" / "keys"
    assert mode(path) == 0o600
    assert path.read_text().strip() not in said.output
    assert str(path) in said.stdout
    assert "copy it to every worker" in said.stdout
    assert CommandSettings().keyring().keys == Keyring.load(path).keys


def test_existing_keys_are_kept_unless_replacing_is_requested(run, home):
    run("keys", "new")
    path = home / ".osbench" / "keys"
    first = Keyring.load(path)

    refused = run("keys", "new", code=2)
    kept = Keyring.load(path)
    rotated = run("keys", "new", "--rotate")
    both = Keyring.load(path)
    run("keys", "new", "--force")
    fresh = Keyring.load(path)

    assert "--rotate" in refused.stderr
    assert kept.keys == first.keys
    assert "2 keys" in rotated.stdout
    assert both.keys[1:] == first.keys
    assert len(fresh.keys) == 1
    assert fresh.keys[0] not in both.keys


def test_keys_go_to_the_named_or_configured_file(run, file, home):
    conf = file(f"[security]\nkey_file = {home}/etc/ring\n", "osbench.conf")

    run("keys", "new", "--file", str(home / "here"))
    run("keys", "new", "--config-file", conf)

    assert mode(home / "here") == mode(home / "etc" / "ring") == 0o600


@pytest.mark.parametrize("group", [deployment, keys])
def test_every_command_explains_itself_with_an_example(group):
    for name, command in group.commands.items():
        assert "Example" in command.help, name
        assert f"osbench-coord {group.name} {name}" in command.help


def test_variables_that_are_not_used_are_named_beside_the_record(run, monkeypatch):
    given = {"AUTH_URL": "http://c/v3", "TOKEN": "pw-hidden", "PROJECT_ID": "p", "REALM": "x"}
    for name, value in given.items():
        monkeypatch.setenv(f"OS_{name}", value)

    said = run("deployment", "create", "--name", "lab", "--from-env")

    assert said.stdout == "Created deployment lab, now in use.\n"
    assert said.stderr == "note: not used: OS_REALM\n"
    assert "pw-hidden" not in run("deployment", "show", "lab").output


def test_a_cloud_and_its_region_are_options_of_create(run, home, monkeypatch):
    loader = pytest.importorskip(
        "openstack.config.loader", reason="the extra osbench[openstack] is not installed"
    )
    monkeypatch.setattr(loader, "CONFIG_FILES", [str(home / "clouds.yaml")])
    (home / "clouds.yaml").write_text(
        "clouds: {lab: {auth_type: v3token, auth: {auth_url: 'http://c/v3', token: pw-hidden},"
        " regions: [north, south]}}"
    )

    run("deployment", "create", "--name", "lab", "--cloud", "lab", "--region", "south")
    shown = run("deployment", "show", "lab", "--json")
    alone = run("deployment", "create", "--name", "x", "--region", "south", "--from-env", code=2)

    content = json.loads(shown.stdout)["spec"]["openstack"]
    assert content["admin"] == {"auth_type": "v3token", "auth": {"token": "***"}}
    assert content["region_name"] == "south"
    assert "--region needs --cloud NAME" in alone.stderr
