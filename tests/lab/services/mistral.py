"""Mistral: API, engine and executor, with a launcher that lets its spans reach the trace store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from services.lab import Lab
from services.mariadb import database_url
from services.process import Process
from services.rabbitmq import transport_url
from services.service import INSIDE, Service, answers, run_several
from services.settings import authtoken, ini, profiler

#: Its profiler only knows how to write to this logger, at level INFO.
SPANS_LOGGED = """\
[loggers]
keys = root, profiler_trace
[handlers]
keys = stderr, spans
[formatters]
keys = plain, bare
[logger_root]
level = WARNING
handlers = stderr
[logger_profiler_trace]
level = INFO
handlers = spans
qualname = profiler_trace
propagate = 0
[handler_stderr]
class = StreamHandler
formatter = plain
args = (sys.stderr,)
[handler_spans]
class = FileHandler
formatter = bare
args = ({file!r},)
[formatter_plain]
format = %(asctime)s %(process)d %(levelname)s %(name)s %(message)s
[formatter_bare]
format = %(message)s
"""


class Mistral(Service):
    """Workflows."""

    name = packages = "mistral"
    # What Rally looks for; the usual type is workflow.
    kind = "workflowv2"
    path = "/v2"
    needs = ("keystone", "mariadb", "rabbitmq")
    ports = ("mistral",)

    def files(self, lab: Lab) -> Mapping[Path, str]:
        home = lab.home("mistral")
        here = {"host": "127.0.0.1"}
        return {
            home / "logging.conf": SPANS_LOGGED.format(file=str(home / "spans.log")),
            home / "mistral.conf": ini(
                {
                    "DEFAULT": {
                        "log_config_append": home / "logging.conf",
                        "transport_url": transport_url(lab),
                    },
                    "api": {**here, "port": lab.port("mistral")},
                    "database": {"connection": database_url(lab, "mistral")},
                    "engine": here,
                    "executor": here,
                    "notifier": here,
                    "cron_trigger": {"enabled": False},
                    "pecan": {"auth_enable": True},
                    "oslo_messaging_rabbit": {"heartbeat_in_pthread": False},
                    **authtoken(lab, "mistral", "workflowv2"),
                    **profiler(lab),
                }
            ),
        }

    def initialise(self, lab: Lab) -> None:
        run_several(
            lab.environment("mistral") / "bin" / "python",
            "mistral.db.sqlalchemy.migration.cli:main",
            lab.home("mistral") / "mistral.conf",
            [["upgrade", "head"], ["populate"]],
        )

    def processes(self, lab: Lab) -> list[Process]:
        environment = lab.environment("mistral") / "bin"
        command = [str(environment / "python"), str(INSIDE / "serve_mistral.py")]
        if lab.options.mistral_stock:
            command = [str(environment / "mistral-server")]
        config = ["--config-file", str(lab.home("mistral") / "mistral.conf")]
        port = lab.port("mistral")
        return [
            Process(
                name="mistral",
                command=[*command, *config, "--server", "api,engine,executor"],
                port=port,
                ready=lambda: answers(f"http://127.0.0.1:{port}/"),
                within_s=180.0,
            )
        ]
