"""The plan of a run on disk: the same plan again, nothing secret in clear, changes refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from helpers.arrivals import write_arrivals
from osbench.common.config.config import load as load_config
from osbench.common.deployment.record import Deployment
from osbench.common.errors import OsbenchError, UsageError
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.keyring import Keyring
from osbench.coordinator.load.run.connection import Connection
from osbench.coordinator.load.run.plan import RunOptions, RunPlan, plan_run
from osbench.coordinator.load.run.resumption import plan_file, run_request
from osbench.coordinator.plugins.contexts.state_store import KEY
from osbench.coordinator.results.storage.resumable import PLAN
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.task.taskfile import checked_task

SCENARIO = """
from osbench.plugin import scenario


@scenario.configure(name="Fed.run")
class Fed(scenario.Scenario):
    def run(self, size, color):
        pass
"""
REDIS = "redis://ann:planted-password@redis.example:6379/0"
RUN = "20260401-101500-abcd"


class Desk:
    """A data directory, a plug-in, a data file, and a task with all that a task can have."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scenario = folder / "fed.py"
        self.scenario.write_text(SCENARIO)
        self.rows = folder / "rows.csv"
        self.rows.write_text("color\n" + "red\nblue\n" * 10)
        self.directory = RunDirectory.create(str(folder / "data"), RUN)

    def conf(self, name: str = "first.conf", *lines: str, redis: str = REDIS) -> cfg.ConfigOpts:
        path = self.folder / name
        data = f"[DEFAULT]\ndata_dir = {self.folder / 'data'}\n"
        messaging = f"[messaging]\nredis_url = {redis}\n" if redis else ""
        path.write_text(data + messaging + "\n".join(lines) + "\n")
        return load_config([str(path)])

    def plan(self, conf: cfg.ConfigOpts) -> RunPlan:
        plugins = Plugins([str(self.scenario)], "rally")
        document: dict[str, Any] = {
            "version": 2,
            "title": "All there is",
            "tags": ["nightly"],
            "subtasks": [
                {
                    "title": "fed",
                    "tags": ["one"],
                    "scenario": {"Fed.run": {"size": {"a": [1, 2.5, None, "planted-argument"]}}},
                    "args_from": str(self.rows),
                    "runner": {"rps": {"times": 20, "rps": 3, "arrivals": "poisson", "seed": 7}},
                    "sla": {"failure_rate": {"max": 10}},
                    "contexts": {"dummy_context": {"fail_setup": False}},
                    "hooks": [
                        {
                            "action": {"sys_call": "true"},
                            "trigger": {"event": {"unit": "time", "at": [1]}},
                        }
                    ],
                    "idempotent": True,
                },
                {"title": "plain", "scenario": {"Dummy.dummy": {}}, "runner": {"serial": {}}},
            ],
        }
        task = checked_task(document, str(self.folder / "task.yaml"), plugins)
        deployment = Deployment.from_spec(
            "shop",
            {
                "osbench": {
                    "services": {"shop": "http://shop.example"},
                    "profiler_hmac_key": "planted-key",
                }
            },
        )
        options = RunOptions(
            run_id=RUN,
            workers=3,
            wait_s=5.0,
            tags=("mine",),
            abort_on_sla=True,
            traces_from="tempo+http://tempo:3200",
        )
        return plan_run(task, plugins, deployment, conf, options)

    def save(self, plan: RunPlan, *, local: bool = False) -> Keyring:
        keyring = Keyring.generate()
        connection = Connection(
            redis_url=REDIS, broker_url=REDIS, keyring=keyring, local=local, check=lambda: None
        )
        plan_file.save(plan, connection, self.directory, 1234.5)
        return keyring


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    found = Desk(tmp_path)
    yield found
    found.directory.close()


def test_the_plan_is_the_same_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = desk.conf("first.conf", "[benchmark]", "max_lag_s = 2.5", "[traces]", "late_s = 0.5")
    first = desk.plan(begun)
    desk.save(first)
    # another host: other defaults, another folder, another address of Redis
    monkeypatch.chdir("/")
    conf = desk.conf("second.conf", "[benchmark]", "max_lag_s = 9", redis="redis://other:6379/0")

    saved = plan_file.load(desk.directory, conf)

    again = saved.plan
    assert saved.started_at == 1234.5
    assert saved.keyring is None
    assert asdict(again.task) == asdict(first.task)
    assert (again.run_id, again.tags, again.options) == (first.run_id, first.tags, first.options)
    assert again.query_url == "tempo+http://tempo:3200"
    assert again.deployment is not None
    assert first.deployment is not None
    assert again.deployment.to_dict() == first.deployment.to_dict()
    assert (again.plugins.paths, again.plugins.prefer) == (first.plugins.paths, "rally")
    assert (conf.benchmark.max_lag_s, conf.traces.late_s) == (2.5, 0.5)
    assert conf.messaging.redis_url == "redis://other:6379/0"
    for before, now in zip(first.workloads, again.workloads, strict=True):
        assert (before.sampling, before.scenario.source_hash) == (
            now.sampling,
            now.scenario.source_hash,
        )
        assert (before.runner.config, before.runner.asked()) == (
            now.runner.config,
            now.runner.asked(),
        )
    fed, _ = again.workloads
    (one, _) = first.workloads
    assert fed.data is not None
    assert one.data is not None
    # batches that are under way are read with the same key
    assert (fed.data.key, len(fed.data)) == (one.data.key, 20)


def test_nothing_of_it_can_be_read(desk: Desk) -> None:
    desk.save(desk.plan(desk.conf()), local=True)

    content = (desk.directory.path / PLAN).read_bytes()

    assert b"planted" not in content
    assert (desk.directory.path / PLAN).stat().st_mode & 0o777 == 0o600


def test_the_address_of_redis_is_not_in_it(desk: Desk) -> None:
    conf = desk.conf()
    desk.save(desk.plan(conf))

    content = plan_file._file(desk.directory, conf).read()

    assert content is not None
    assert b"planted-password" not in content
    assert json.loads(content)["secrets"] is None


def test_a_local_run_stays_local_with_its_keys(desk: Desk) -> None:
    keyring = desk.save(desk.plan(desk.conf(redis="")), local=True)
    conf = desk.conf("second.conf")

    saved = plan_file.load(desk.directory, conf)

    assert saved.keyring is not None
    assert saved.keyring.text == keyring.text
    assert conf.messaging.redis_url is None


def _changed_rows(desk: Desk) -> None:
    desk.rows.write_text("color\n" + "red\ngreen\n" * 10)


def _changed_scenario(desk: Desk) -> None:
    desk.scenario.write_text(SCENARIO + "\n# changed\n")


def _without_key(desk: Desk) -> None:
    (desk.folder / "data" / KEY).unlink()


def _without_plan(desk: Desk) -> None:
    (desk.directory.path / PLAN).unlink()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_changed_rows, "rows.csv has changed since the run began"),
        (_changed_scenario, "file of scenario Fed.run has changed"),
        (_without_key, "copy it from the data directory"),
        (_without_plan, "plan is missing"),
    ],
)
def test_what_has_changed_is_refused(desk: Desk, change: Callable[[Desk], None], said: str) -> None:
    conf = desk.conf()
    desk.save(desk.plan(conf))
    change(desk)

    with pytest.raises(OsbenchError, match=said):
        plan_file.load(desk.directory, conf)


def test_another_version_and_another_kind_of_workers_are_refused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.save(desk.plan(desk.conf()))

    with pytest.raises(UsageError, match=r"has shared workers: set .* redis_url"):
        plan_file.load(desk.directory, desk.conf("second.conf", redis=""))
    monkeypatch.setattr(plan_file, "__version__", "99.0")
    with pytest.raises(UsageError, match=r"begun by osbench \d.*instead of 99\.0"):
        plan_file.load(desk.directory, desk.conf())


def test_what_was_asked_of_a_run_is_kept_encrypted_for_another(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = desk.conf()
    plan = desk.plan(conf)

    run_request.save(plan, desk.directory)
    monkeypatch.chdir("/")
    asked = run_request.load(desk.directory, conf)

    assert asdict(asked.task) == asdict(plan.task)
    assert Path(asked.task.source).is_absolute()
    assert asked.options == RunOptions(
        workers=3,
        wait_s=5.0,
        tags=("mine",),
        abort_on_sla=True,
        traces_from="tempo+http://tempo:3200",
    )
    assert (asked.plugin_paths, asked.prefer) == (plan.plugins.paths, "rally")
    assert asked.deployment == "shop"
    assert b"planted" not in (desk.directory.path / run_request.REQUEST).read_bytes()


def test_a_run_of_which_nothing_is_kept_cannot_be_run_again(desk: Desk) -> None:
    with pytest.raises(UsageError, match="cannot be run again, as its request is not kept"):
        run_request.load(desk.directory, desk.conf())


def test_arrivals_go_on_with_the_key_of_their_rows(desk: Desk) -> None:
    path = write_arrivals(desk.folder / "some.arrivals", [0, 1, 2, 3], ["blue", "red"], 4)
    plugins = Plugins([str(desk.scenario)], "rally")
    document = {
        "version": 2,
        "title": "Replayed",
        "subtasks": [
            {
                "title": "fed",
                "scenario": {"Branched.run": {}},
                "runner": {"replay": {"file": "some.arrivals", "from": 1}},
            }
        ],
    }
    desk.scenario.write_text(SCENARIO.replace("Fed", "Branched").replace("size, color", "branch"))
    task = checked_task(document, str(desk.folder / "task.yaml"), plugins)
    plan = plan_run(task, plugins, None, desk.conf(), RunOptions(run_id=RUN))
    desk.save(plan)

    again = plan_file.load(desk.directory, desk.conf()).plan
    write_arrivals(path, [0, 1, 2, 3], ["blue", "red!"], 4)

    (before,), (now,) = plan.workloads, again.workloads
    assert before.data is not None
    assert now.data is not None
    assert (now.data.key, now.data.digest) == (before.data.key, before.data.digest)
    assert len(now.data) == now.runner.planned == 3
    with pytest.raises(UsageError, match=r"some\.arrivals has changed since the run began"):
        plan_file.load(desk.directory, desk.conf())
