"""Whatever is wrong with task, servers, keys or workers: one clear message and exit code 2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from helpers.runs import Cluster, Finished, Site, site
from servers import RedisServer, free_port, redis_server

pytestmark = pytest.mark.functional

DUMMY: dict[str, Any] = {"Dummy.dummy": {"sleep": 0.01}}
CONSTANT: dict[str, Any] = {"constant": {"times": 4, "concurrency": 2}}
GOOD = {"scenario": DUMMY, "runner": CONSTANT}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A shared Redis, a key file, and no workers."""
    with redis_server(password="functional") as redis, site() as here:
        yield Cluster(here, redis)


def is_refused(here: Site, *arguments: str, says: tuple[str, ...]) -> None:
    """The same in both forms: one message that names what is wrong, no traceback, exit code 2.

    Nothing is started, not even a process for the command.
    """
    one, other = here.call("run", *arguments), here.call("run", "--json", *arguments)

    assert (one.code, other.code) == (2, 2), one.err + other.err
    assert one.out == ""
    reported = other.result["error"]
    problems = [f"{problem['place']}: {problem['message']}" for problem in reported["problems"]]
    for text in (one.err, "\n".join([reported["message"], *problems])):
        assert all(word in text for word in says), text
        assert "Traceback" not in text
    assert "Traceback" not in other.err


def cannot_begin(here: Site, *arguments: str, says: tuple[str, ...]) -> None:
    """Its only workload is an error that names what is wrong, in both forms; exit code 2."""
    other = here.run(*arguments)
    plain = here.coord("results", "last")

    assert (other.code, plain.code) == (2, 0), plain.err + other.err
    (workload,) = other.result["workloads"]
    assert all(word in workload["error"] for word in says), workload["error"]
    assert all(word in " ".join(plain.out.split()) for word in ("not begun:", *says)), plain.out
    assert "Traceback" not in plain.err + other.err


#: A wrong workload, and what its problem says.
WRONG: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({**GOOD, "scenario": {"Dummy.dumy": {}}}, ("Dummy.dumy", "Dummy.dummy")),
    ({**GOOD, "scenario": {"Dummy.dummy_exception": {"slep": 1}}}, ("slep",)),
    ({**GOOD, "runner": {"constnat": {}}}, ("constnat", "constant")),
    ({**GOOD, "runner": {"constant": {"tmies": 4}}}, ("tmies",)),
    ({**GOOD, "runner": {"constant": {"times": "four"}}}, ("times", "four")),
    (
        {**GOOD, "runner": {"constant": {"times": 2, "concurrency": 5}}},
        ("concurrency 5", "times 2"),
    ),
    ({**GOOD, "runner": {"rps": {"times": 4, "rps": 0}}}, ("rps", "0")),
    ({**GOOD, "runner": {"rps": {"times": 4}}}, ("rps",)),
    ({**GOOD, "sla": {"failure_rat": {"max": 0}}}, ("failure_rat", "failure_rate")),
    ({**GOOD, "sla": {"failure_rate": {"max": "none"}}}, ("max", "none")),
    ({**GOOD, "contexts": {"usres": {}}}, ("usres",)),
    ({**GOOD, "slaa": {}}, ("slaa",)),
]


def test_every_wrong_workload_of_a_task_is_named(cluster: Cluster) -> None:
    task = cluster.site.task(*(workload for workload, _ in WRONG))
    done = cluster.site.call("run", "--json", task)

    assert done.code == 2
    problems = done.result["error"]["problems"]
    for at, (_, says) in enumerate(WRONG):
        found = [one for one in problems if one["place"].startswith(f"subtasks[{at}]")]
        texts = [f"{one['place']}: {one['message']}" for one in found]
        assert len(texts) == 1, (at, texts)
        assert all(word in texts[0] for word in says), texts
    assert len(problems) == len(WRONG)
    assert "Traceback" not in done.err


def test_all_problems_are_reported_at_once(cluster: Cluster) -> None:
    task = cluster.site.task(
        {**GOOD, "scenario": {"Dummy.dumy": {}}}, {**GOOD, "runner": {"rps": {"rps": 0}}}
    )

    is_refused(
        cluster.site, task, says=("task.json", "2 problems", "subtasks[0]", "subtasks[1]", "dumy")
    )


def test_a_file_that_is_no_task(cluster: Cluster) -> None:
    here = cluster.site
    here.write("broken.yaml", "version: 2\ntitle: [")

    is_refused(here, "broken.yaml", says=("broken.yaml",))
    is_refused(here, "nowhere.yaml", says=("nowhere.yaml",))


def test_an_unknown_option_in_the_configuration(cluster: Cluster) -> None:
    here = cluster.site
    file = here.configure(
        cluster.messaging, {"coordinator": {"wait_for_worker": 3}}, name="typo.conf"
    )

    is_refused(
        here,
        here.task(GOOD),
        "--config-file",
        str(file),
        says=("typo.conf", "wait_for_worker", "wait_for_workers_s"),
    )


def test_an_unknown_deployment(cluster: Cluster) -> None:
    is_refused(cluster.site, cluster.site.task(GOOD), "--deployment", "nope", says=("nope",))


def against(cluster: Cluster, redis_url: str) -> tuple[str, ...]:
    """Arguments of a run with another Redis."""
    file = cluster.site.configure({"messaging": {"redis_url": redis_url}}, name="other.conf")
    return (cluster.site.task(GOOD), "--config-file", str(file))


def test_a_redis_that_is_not_there(cluster: Cluster) -> None:
    port = free_port()
    url = f"redis://:wrong-secret@127.0.0.1:{port}/0"

    arguments = (*against(cluster, url), "--wait-for-workers", "0")

    is_refused(cluster.site, *arguments, says=(f"127.0.0.1:{port}", "not respond", "redis_url"))
    assert "wrong-secret" not in cluster.site.call("run", "--json", *arguments).out


def test_a_wrong_password_is_named_as_such_and_not_shown(cluster: Cluster) -> None:
    url = cluster.redis.url.replace("functional", "wrong-secret")

    arguments = against(cluster, url)

    is_refused(cluster.site, *arguments, says=("refuses access", "password", "redis_url"))
    assert "wrong-secret" not in cluster.site.call("run", "--json", *arguments).out


def test_a_redis_without_the_password(cluster: Cluster) -> None:
    url = cluster.redis.url.replace(":functional@", "")

    is_refused(cluster.site, *against(cluster, url), says=("refuses access", "password"))


def test_a_redis_that_evicts(cluster: Cluster) -> None:
    with redis_server(maxmemory_policy="allkeys-lru") as evicting:
        is_refused(
            cluster.site,
            *against(cluster, evicting.url),
            says=("allkeys-lru", "maxmemory-policy noeviction"),
        )


def test_a_missing_key_file(cluster: Cluster) -> None:
    file = cluster.site.configure(
        cluster.messaging, {"security": {"key_file": "/nowhere/keys"}}, name="other.conf"
    )
    task = cluster.site.task(GOOD)

    is_refused(
        cluster.site,
        task,
        "--config-file",
        str(file),
        says=("/nowhere/keys", "osbench-coord keys new"),
    )


def test_a_worker_reports_the_same(cluster: Cluster) -> None:
    here = cluster.site
    wrong = cluster.redis.url.replace("functional", "wrong-secret")
    broken = here.write("broken/mine.py", "import nothing_of_that_name\n")
    cases: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        ({"security": {"key_file": "/nowhere/keys"}}, ("osbench-coord keys new",)),
        ({"messaging": {"redis_url": wrong}}, ("password",)),
        ({"worker": {"plugin_path": "/nowhere/plugins"}}, ("/nowhere/plugins",)),
        # seen by each process alone, unlike what is above
        (
            {"worker": {"plugin_path": str(broken)}},
            ("mine.py:1: ModuleNotFoundError", "(2 of 2 worker processes; "),
        ),
    ]
    files = [
        here.configure(cluster.messaging, case, name=f"worker-{at}.conf")
        for at, (case, _) in enumerate(cases)
    ]
    workers = [
        here.begin("osbench-worker", "--processes", "2", "--config-file", str(file))
        for file in files
    ]

    ended = [worker.finish() for worker in workers]

    assert [done.code for done in ended] == [2] * len(cases)
    for done, (_, says) in zip(ended, cases, strict=True):
        # once, and not by every process
        assert done.err.count("osbench-worker: ") == 1
        assert all(word in done.err for word in says), done.err
        assert "Traceback" not in done.err
        assert "wrong-secret" not in done.err


def test_no_worker_in_time(cluster: Cluster) -> None:
    is_refused(
        cluster.site,
        cluster.site.task(GOOD),
        "--wait-for-workers",
        "0.5",
        says=("no free worker within 0.5 s", "osbench-worker"),
    )
    assert cluster.run_keys() == set()


@pytest.fixture
def worker(redis: RedisServer) -> Iterator[Cluster]:
    """A separate cluster, whose one worker the test starts."""
    with site() as here:
        yield Cluster(here, redis)


def test_more_users_or_workers_than_there_are(worker: Cluster) -> None:
    worker.start_worker("--virtual-users", "8")
    worker.await_idle(1)
    here = worker.site
    many = {**GOOD, "runner": {"constant": {"times": 100, "concurrency": 50}}}

    is_refused(
        here,
        here.task(many),
        *("--wait-for-workers", "0.5"),
        says=("50", "8", "--virtual-users"),
    )

    worker.await_idle(1)
    worker.start_worker("--virtual-users", "8")
    worker.await_idle(2)
    task = here.task({**GOOD, "runner": {"constant": {"times": 20, "concurrency": 10}}})

    lacking = here.call("run", "--json", task, "--workers", "3", "--wait-for-workers", "0.5")
    # two would do, but one is asked for: there is nothing to wait for
    chosen = here.call("run", "--json", task, "--workers", "1", "--wait-for-workers", "600")
    done = here.run(task, "--workers", "2")

    assert (lacking.code, chosen.code) == (2, 2)
    message = lacking.result["error"]["message"]
    assert "3 worker processes requested and 2 free after 0.5 s" in message
    assert "fewer than --workers 3" in message
    assert "--virtual-users" not in message
    message = chosen.result["error"]["message"]
    assert "asks for 10 virtual users at once and --workers 1 gives it 8" in message
    assert "Ask for more with --workers" in message
    assert done.code == 0, done.err


def test_a_worker_with_another_key_is_not_used_and_shown_as_such(worker: Cluster) -> None:
    here = worker.site
    other = here.home / "other-keys"
    made = here.coord("keys", "new", "--config-file", str(with_keys(worker, str(other))))
    assert made.code == 0, made.err
    worker.start_worker("--config-file", str(with_keys(worker, str(other))))
    client = worker.redis.client()
    worker.workers[0].wait_for(lambda: client.keys("osbench:worker:*"))
    client.close()

    listed = here.call("workers")
    done = here.call("run", "--json", here.task(GOOD), "--wait-for-workers", "0.5")

    assert "1 worker signs its heartbeats with another key" in listed.err
    assert done.code == 2
    assert "no free worker" in done.result["error"]["message"]
    assert "with another key" in done.result["error"]["message"]
    worker.workers[0].await_said("copy its key file to this host")


def with_keys(worker: Cluster, path: str) -> Any:
    return worker.site.configure(
        worker.messaging, {"security": {"key_file": path}}, name="other.conf"
    )


PLUGIN = '''
from osbench.plugin import scenario


@scenario.configure(name="Mine.act")
class Act(scenario.Scenario):
    """Version {}."""

    def run(self):
        pass
'''
MINE = {**GOOD, "scenario": {"Mine.act": {}}}


def test_a_worker_without_the_plugin(fleet: Cluster) -> None:
    here = fleet.site
    plugin = here.write("plugins/mine.py", PLUGIN.format(1))

    cannot_begin(
        here,
        here.task(MINE),
        "--plugin-path",
        str(plugin),
        says=(
            "there is no scenario 'Mine.act' here: start osbench-worker with the coordinator's "
            "--plugin-path",
        ),
    )
    fleet.await_idle(1)
    broken = here.write("broken/mine.py", "import nothing_of_that_name\n")
    # a plug-in that cannot be imported, and is not needed
    done = here.run(here.task(GOOD), "--plugin-path", str(broken))
    assert done.code == 0, done.err
    assert "mine.py:1: ModuleNotFoundError" in done.err
    assert fleet.run_keys() == set()


def test_a_worker_with_another_version_of_the_plugin(worker: Cluster) -> None:
    here = worker.site
    ours = here.write("plugins/mine.py", PLUGIN.format(1))
    theirs = here.write("elsewhere/mine.py", PLUGIN.format(2))
    worker.start_worker("--plugin-path", str(theirs))
    worker.await_idle(1)

    cannot_begin(
        here,
        here.task(MINE),
        "--plugin-path",
        str(ours),
        says=("Mine.act", "same file", "restart"),
    )
    worker.await_idle(1)


def test_a_plugin_that_cannot_be_imported(cluster: Cluster) -> None:
    here = cluster.site
    plugin = here.write("broken/mine.py", "import nothing_of_that_name\n")

    is_refused(
        here,
        here.task({"scenario": {"Mine.act": {}}}),
        "--plugin-path",
        str(plugin),
        says=("no scenario 'Mine.act'", "mine.py:1", "nothing_of_that_name"),
    )


#: Prints where it is loaded, and where it is used.
NOISY = """
from osbench.plugin import context

print("loading")


class Noisy(context.Context):
    NAME = "noisy"
    CONFIG_SCHEMA = {"type": "object"}

    def setup(self):
        print("set up")

    def cleanup(self):
        print("undone")
"""


def test_in_local_mode_a_plugin_whose_warm_up_fails(cluster: Cluster) -> None:
    text = PLUGIN.format(1) + (
        "\n    @classmethod\n    def warm_up(cls, context):\n        raise OSError('no licence')\n"
    )
    with site() as here:
        plugin = here.write("mine/act.py", text)
        noisy = here.write("mine/noisy.py", NOISY)
        task = here.task({**MINE, "contexts": {"noisy": {}}})

        done: Finished = here.run(task, "--plugin-path", str(plugin.parent))

        assert done.code == 2
        line = text.splitlines().index("        raise OSError('no licence')") + 1
        said = f"{plugin}:{line}: warm_up of scenario Mine.act failed: OSError: no licence"
        # stdout has the object alone
        (workload,) = done.result["workloads"]
        assert said in workload["error"]
        assert f"{noisy}:4 prints: loading\n" in done.err
        assert "set up\nundone\n" in done.err
        assert "Traceback" not in done.err
        here.await_nothing_left()


def test_more_threads_than_are_possible_are_refused_before_the_load() -> None:
    with site() as here:
        load = ("--concurrency", "1000000", "--duration", "5s")

        cannot_begin(
            here,
            *("--scenario", "Dummy.dummy", *load),
            says=("virtual users are requested of each worker process", "as threads: possible are"),
        )
        here.await_nothing_left()
