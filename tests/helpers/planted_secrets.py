"""A secret of its own in every place that can hold one, and a service that is told them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from helpers.json_server import LoopbackServer, QuietHandler
from helpers.recordings import entry

#: What the task has, by the place where it stands; what looks like a name is one of the table.
OF_TASK = (
    *("userinfo", "query", "encoded-query", "form-query", "path", "bearer", "x-auth-token"),
    *("dpop", "proxy-authorization", "underscored-header", "cookie-header", "cookies-option"),
    *("auth-option", "json", "nested-json", "form", "login-code", "data-text", "flow-header"),
    *("workload-http", "csv", "argument", "subtask-title", "description", "tag", "workload-name"),
    *("context", "context-error", "hook", "hook-output", "runner-sla", "start-step", "task-args"),
    *("environment", "env-list"),
)
#: What the service answers, and what a scenario raises, prints and logs.
OF_SERVICE = ("answer-json", "answer-header", "answer-cookie", "answer-text", "answer-state")
OF_SCENARIO = ("exception", "cause", "source-line", "printed", "logged", "long-message")
OF_RECORDING = ("har-header", "har-query", "har-json", "har-path", "har-code")

PLANTED = {
    name: f"planted-{name}-{1000 + 7 * number}"
    for number, name in enumerate((*OF_TASK, *OF_SERVICE, *OF_SCENARIO, *OF_RECORDING))
}
#: Secrets that the service has to get: masked is what is kept and shown, and not what is sent.
SENT = (
    *("query", "encoded-query", "form-query", "path", "bearer", "x-auth-token", "dpop"),
    *("proxy-authorization", "underscored-header", "cookie-header", "cookies-option", "json"),
    *("nested-json", "form", "login-code", "data-text", "flow-header", "workload-http", "csv"),
    *("start-step", "task-args", "environment", "answer-json"),
)

PLUGIN = """
import logging

from osbench.plugin import context, scenario, sla

LOG = logging.getLogger(__name__)


class Vault(context.Context):
    NAME = "vault"

    def setup(self):
        if self.config.get("broken"):
            raise RuntimeError("cannot open: password=" + self.config["admin_pass"])
        self.made["secret"] = self.config["admin_pass"]

    def cleanup(self):
        pass


class Checked(sla.Sla):
    NAME = "checked"

    def check(self, statistics):
        raise RuntimeError("token=" + self.config["token"])


class Logs(scenario.Scenario):
    @scenario.configure(name="Logs.in")
    def run(self, password, env):
        print(f"it is {password}, token=PRINTED")
        LOG.warning("headers are %s", {"X-Auth-Token": "LOGGED"})
        try:
            raise KeyError("api_key: CAUSE")
        except KeyError as error:
            raise self.refused(f"no login with {password} and token=EXCEPTION", error) from error

    def refused(self, message, error, password="SOURCE-LINE"):
        return RuntimeError(message)


class Long(scenario.Scenario):
    @scenario.configure(name="Long.message")
    def run(self):
        raise RuntimeError("x" * 990 + " password=LONG-MESSAGE")
"""


def plugin() -> str:
    """The plug-in file: a scenario, a context and a criterion that tell secrets."""
    text = PLUGIN
    for name in ("printed", "logged", "exception", "cause", "source-line", "long-message"):
        text = text.replace(name.upper(), PLANTED[name])
    return text


class SecretService(LoopbackServer):
    """Notes what it gets, and answers with secrets of its own."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.got: list[str] = []


class _Handler(QuietHandler):
    server: SecretService

    def _serve(self) -> None:
        self.server.got.append(f"{self.path} {self.sent_headers()} {self.sent_body().decode()}")
        if self.path.startswith("/error"):
            payload = f"login failed, password={PLANTED['answer-text']} is wrong".encode()
            self.send_response(500)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)
            return
        headers = {
            "X-Subject-Token": PLANTED["answer-header"],
            "Set-Cookie": f"sid={PLANTED['answer-cookie']}; Path=/",
        }
        document = {
            "access_token": PLANTED["answer-json"],
            "adminPass": [PLANTED["answer-state"]],
            "code": 200,
        }
        self.answer(200, document, **headers)

    do_GET = do_POST = do_PUT = _serve


def workloads(url: str) -> list[dict[str, Any]]:
    """Subtasks whose workloads tell or are told a secret in every place."""
    here = PLANTED
    once = {"runner": {"serial": {"times": 2}}}
    request = {
        "url": f"{url}/a?api_key={here['query']}",
        "method": "GET",
        "status_code": 404,
    }
    headers = {
        "Authorization": f"Bearer {here['bearer']}",
        "X-Auth-Token": here["x-auth-token"],
        "DPoP": here["dpop"],
        "Proxy-Authorization": f"Basic {here['proxy-authorization']}",
        "X_Api_Key": here["underscored-header"],
    }
    # of a user in the URL requests makes the header Authorization
    user = url.replace("//", f"//bob:{here['userinfo']}@")
    encoded = f"{user}/a?api%5Fkey={here['encoded-query']}"
    flow = {
        "base": url,
        "on_start": [{"name": "begin", "path": f"/a?sig={here['start-step']}"}],
        "steps": [
            {
                "name": "login",
                "method": "POST",
                "path": f"/a?temp_url_sig={here['form-query']}",
                "headers": {"Cookie": f"sid={here['cookie-header']}"},
                "json": {"password": here["json"], "list": [[{"otp": here["nested-json"]}]]},
                "save": {"session": "$.access_token"},
            },
            {
                "name": "use",
                "method": "POST",
                "path": f"/reset/{here['path']}-0123456789abcdef",
                "headers": {
                    "X-Auth-Token": "{saved.session}",
                    "X-Service-Token": here["flow-header"],
                },
                "form": {"passcode": here["form"], "grant_type": "a", "code": here["login-code"]},
            },
            {"name": "check", "path": "/a", "check": {"header Set-Cookie": "nope", "text": "no"}},
        ],
    }
    failing = {"name": "fail", "path": "/error", "query": {"token": "{{ token }}"}}
    environment = {"name": "env", "path": "/a", "headers": {"X-Api-Key": "{{ env('PLANTED') }}"}}
    hook = f"sh -c 'echo secret={here['hook-output']}; exit 1' --password {here['hook']}"
    return [
        {"scenario": {"HttpRequests.check_request": {**request, "headers": headers}}, **once},
        {"scenario": {"HttpRequests.check_request": {**request, "url": encoded}}, **once},
        {
            "scenario": {
                "HttpRequests.check_request": {
                    **request,
                    "url": f"{url}/b",
                    "method": "POST",
                    "cookies": {"theme": here["cookies-option"]},
                    "auth": ["bob", here["auth-option"]],
                    "data": f"user=bob&passwd={here['data-text']}",
                }
            },
            **once,
        },
        {"scenario": {"HttpFlow.run": flow}, "description": f"pw={here['description']}", **once},
        {
            "title": f"at http://bob:{here['subtask-title']}@host/",
            "tags": [f"http://bob:{here['tag']}@host/"],
            "workloads": [
                {
                    "name": f"at http://bob:{here['workload-name']}@host/",
                    "scenario": {"HttpFlow.run": {"steps": [environment, failing]}},
                    "http": {"base": url, "headers": {"X-Vault-Token": here["workload-http"]}},
                    **once,
                }
            ],
        },
        {
            "scenario": {"HttpFlow.run": {"steps": [{"path": "/a?pin={data.pin}"}], "base": url}},
            "users": {"data": {"file": "rows.csv"}},
            **once,
        },
        {
            "scenario": {
                "Logs.in": {
                    "password": here["argument"],
                    "env": [{"name": "OS_PASSWORD", "value": here["env-list"]}],
                }
            },
            "contexts": {"vault": {"admin_pass": here["context"]}},
            "hooks": [
                {
                    "action": {"sys_call": hook},
                    "trigger": {"event": {"unit": "iteration", "at": [1]}},
                    "description": "token=ignored",
                }
            ],
            "sla": {"checked": {"token": here["runner-sla"]}},
            **once,
        },
        {"scenario": {"Long.message": {}}, **once},
        {
            "scenario": {"Dummy.dummy": {}},
            "contexts": {"vault": {"admin_pass": here["context-error"], "broken": True}},
            **once,
        },
    ]


def recording(url: str) -> list[dict[str, Any]]:
    """Entries of a HAR file."""
    here: Mapping[str, str] = PLANTED
    login = {"grant_type": "authorization_code", "code": here["har-code"]}
    return [
        entry("GET", f"{url}/a?sig={here['har-query']}", headers={"DPoP": here["har-header"]}),
        entry("POST", f"{url}/a", json_body={"passcode": here["har-json"]}),
        entry("GET", f"{url}/reset/{here['har-path']}-0123456789abcdef"),
        entry("POST", f"{url}/token", form=login),
    ]


def task_text(url: str) -> str:
    """The task file, a template."""
    titled = [{"title": f"{at}", **one} for at, one in enumerate(workloads(url))]
    return json.dumps({"version": 2, "title": "Planted", "subtasks": titled})
