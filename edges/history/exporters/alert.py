"""Exporter `alert`: a run that failed, or is well again, as a webhook of Alertmanager.

The format is version 4 of the webhooks that Alertmanager sends:
https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from osbench.edges.history.exporters.posting import PAUSE, PAUSE_S, Poster
from osbench.plugin import exporter
from osbench.plugin.formatting import mask_text, mask_url, plain

#: The end of an alert that goes on.
_NEVER = "0001-01-01T00:00:00Z"
#: Characters of a description, and notes in it.
_LONGEST, _NOTES = 4_000, 10


class Alert(exporter.Exporter):
    """Sends a webhook as Alertmanager's: `firing` if a run failed, `resolved` if it did not.

    The alert OsbenchRunFailed has the labels task, exit_code and run, and annotations with the
    failures. Receivers of Alertmanager's webhooks, such as bridges to chats and pagers, take it.
    Credentials are read from ~/.netrc.
    """

    NAME: ClassVar[str] = "alert"
    SCHEMES: ClassVar[tuple[str, ...]] = ("http", "https")
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"pause_s": PAUSE},
        "additionalProperties": False,
    }

    def send(self, run: exporter.ExportedRun, url: str) -> str:
        """Send one alert with the result of the run; return a line on it for the user.

        Raises ExportError if the receiver refuses it, or does not accept it after `TRIES` attempts.
        """
        summary = run.summary
        failed = [
            f"{workload['name']}: {verdict['criterion']}: {verdict['detail']}"
            for workload in summary["workloads"]
            for verdict in workload["sla"]
            if not verdict["success"]
        ]
        is_bad = summary["exit_code"] != 0
        document = alert_document(
            "OsbenchRunFailed",
            labels={
                "task": summary["task"],
                "exit_code": str(summary["exit_code"]),
                "run": summary["run_id"],
            },
            # each by itself: with the other a title may look like a secret
            summary=f"{mask_text(summary['task'])}: {summary['exit_meaning']}",
            details=[*failed, *summary["notes"][:_NOTES]] if is_bad else (),
            started_at=summary["started_at"],
            ended_at=None if is_bad else summary["finished_at"],
        )
        post_alert(url, document, self.config.get("pause_s", PAUSE_S))
        return f"sent {'an alert' if is_bad else 'that all is well'} to {mask_url(url)}"


def alert_document(
    name: str,
    *,
    labels: Mapping[str, str],
    summary: str,
    details: Sequence[str],
    started_at: str,
    ended_at: str | None,
) -> dict[str, Any]:
    """Return the JSON document of a webhook with one alert.

    `name`: of the alert. `started_at`, `ended_at`: ISO 8601; without an end the alert is `firing`,
    else `resolved`. Texts are cut; secrets in `details` are masked, in `summary` and `labels` they
    must be masked already. Empty labels are left out.
    """
    status = "firing" if ended_at is None else "resolved"
    named = {"alertname": name} | {key: plain(value, 200) for key, value in labels.items() if value}
    description = "\n".join(plain(mask_text(line), 1000) for line in details)
    annotations = {"summary": plain(summary, 1000), "description": description[:_LONGEST]}
    group = {key: named[key] for key in ("alertname", "task") if key in named}
    alert = {
        "status": status,
        "labels": named,
        "annotations": annotations,
        "startsAt": started_at,
        "endsAt": ended_at or _NEVER,
        "generatorURL": "",
        "fingerprint": "",
    }
    return {
        "version": "4",
        "groupKey": json.dumps(group, sort_keys=True),
        "truncatedAlerts": 0,
        "status": status,
        "receiver": "osbench",
        "groupLabels": group,
        "commonLabels": named,
        "commonAnnotations": annotations,
        "externalURL": "",
        "alerts": [alert],
    }


def post_alert(url: str, document: Mapping[str, Any], pause_s: float = PAUSE_S) -> None:
    """Send a webhook's JSON document to `url`; attempts it up to `TRIES` times.

    `pause_s`: before the second attempt; it doubles each time. Raises ExportError if the receiver
    refuses the document, or stays busy or unreachable.
    """
    poster = Poster({"Content-Type": "application/json"}, pause_s)
    poster.post(url, json.dumps(document).encode())
