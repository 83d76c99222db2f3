"""The task file that `init` writes: a flow of one request, to be run as it is and then edited."""

from __future__ import annotations

import json
import re
from urllib.parse import urlsplit

from osbench.common.errors import UsageError
from osbench.coordinator.task.taskfile.task_yaml import JINJA

#: Address to put under load if none is given: the address of `samples/webservice.py`.
ADDRESS = "http://127.0.0.1:8080/"

_TEXT = """\
# A flow of HTTP requests under load. Run it with
#   osbench-coord run %(name)s
# and against another address with --task-args base=http://host
version: 2
title: %(title)s
subtasks:
  - title: Four virtual users, each waiting for its responses
    scenario: &flow
      # `osbench-coord plugin show scenario HttpFlow.run` lists the keys of a step
      HttpFlow.run:
        base: "{{ base or '%(base)s' }}"
        # made once by each virtual user; later steps may use saved parts of a response:
        #   on_start:
        #     - {name: login, method: POST, path: /login, json: {name: ann}, save: {token: $.token}}
        steps:
          # any status below 400 is fine without `expect`; steps are made one after the other:
          #   - {name: order, method: POST, path: /orders, json: {item: 1}, expect: 201}
          - {name: %(step)s, path: %(path)s}
    runner:
      # closed: each virtual user starts its next iteration when the last one has ended
      constant_for_duration: {duration: 10s, concurrency: 4, timeout: 10s}
    sla: &limits
      failure_rate: {max: 1}
      # percentile: {p: 95, max_s: 250ms}

  - title: Twenty arrivals per second, however long each takes
    scenario: *flow
    runner:
      # open: arrivals keep to their schedule
      rps: {rps: 20, times: 200, timeout: 10s}
    sla: *limits
"""


def first_task(name: str, address: str = ADDRESS) -> str:
    """Return the text of a task that puts the URL `address` under a closed, then an open load.

    `name`: file name, for its comments. Raises UsageError if the address is not an HTTP URL.
    """
    try:
        parts = urlsplit(address)
        _ = parts.port  # reading it checks it
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not re.fullmatch(r"[^\s'\"\\{}]+", parts.netloc):
        raise UsageError(f"--url: write http:// or https:// and a host, such as {ADDRESS}")
    path = parts.path or "/"
    query = f"?{parts.query}" if parts.query else ""
    return _TEXT % {
        "name": name,
        "title": _yaml_string(f"GET {path} of {parts.hostname}"),
        "base": f"{parts.scheme}://{parts.netloc}",
        # a brace would begin a placeholder
        "step": _yaml_string(f"GET {re.sub('[{}]', '_', path)}"),
        "path": _yaml_string(f"{path}{query}".replace("{", "{brace}")),
    }


def _yaml_string(text: str) -> str:
    """Return the text as a double-quoted YAML string, with Jinja's opening braces escaped."""
    return JINJA.sub(lambda brace: f"\\x{ord(brace.group()):02x}", json.dumps(text))
