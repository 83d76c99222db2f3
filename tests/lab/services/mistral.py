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

#: Its profiler only knows how to write to a logger, which this sample sends to a file.
LOGGING = Path(__file__).parents[3] / "deploy" / "logging" / "trace-logging.conf"


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
            home / "trace-logging.conf": self._logging(lab),
            home / "mistral.conf": ini(
                {
                    "DEFAULT": {
                        "log_config_append": home / "trace-logging.conf",
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
            )
        ]

    def _logging(self, lab: Lab) -> str:
        """The sample, its files in the lab's folder."""
        sample = LOGGING.read_text("utf-8")
        ours = {
            "/var/log/mistral/mistral.log": lab.processes.log("mistral"),
            "/var/log/mistral": lab.home("mistral"),
        }
        for theirs, file in ours.items():
            sample = sample.replace(theirs, str(file))
        return sample
