"""Tasks made of descriptions of services: OpenAPI 3 and Swagger 2."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from osbench.coordinator.front.cli import main
from osbench.coordinator.task.taskfile.template import names, render
from osbench.edges.recordings.openapi_steps import query_fields

PETS = """
openapi: 3.0.3
info: {title: "Pets {{ 7 * 7 }}", version: "1"}
servers: [{url: "https://{env}.pets.example/v1/", variables: {env: {default: test}}}]
security: [{bearer: []}]
paths:
  /pets:
    get:
      tags: [pets]
      parameters:
        - {name: limit, in: query, schema: {type: integer, default: 20}}
        - {name: since, in: query, required: true, schema: {type: string, format: date-time}}
        - {name: other, in: query, schema: {type: string}}
        - {name: kind, in: query, examples: {a: {value: [cat, dog]}}}
        - {name: X-Trace, in: header, example: false}
      responses: {"200": {description: fine}, "404": {description: none}}
    post:
      tags: [pets]
      requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/Pet"}}}}
      responses: {"201": {description: made}}
  /pets/{petId}:
    parameters: [{$ref: "#/components/parameters/Id"}]
    get: {tags: [pets], responses: {default: {description: any}}}
    delete: {tags: [pets], responses: {"204": {description: gone}}}
  /report:
    get: {responses: {"200": {}, "202": {}}, security: [{key: []}]}
  /photo:
    put: {requestBody: {content: {image/png: {}}}, responses: {}}
components:
  securitySchemes:
    bearer: {type: http, scheme: bearer}
    key: {type: apiKey, in: header, name: X-Api-Key}
  parameters:
    Id: {name: petId, in: path, required: true, schema: {type: integer, minimum: 5}}
  schemas:
    Pet:
      type: object
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string, example: "Rex {user} #} {{ x }}"}
        born: {type: string, format: date, example: 2020-01-02}
        password: {type: string, example: never-written}
        parent: {$ref: "#/components/schemas/Pet"}
        tags: {type: array, items: {enum: [small, big]}}
        owner: {allOf: [{properties: {n: {type: number}}}, {properties: {ok: {type: boolean}}}]}
"""

SHOP = {
    "swagger": "2.0",
    "host": "shop.example",
    "basePath": "/api",
    "schemes": ["https"],
    "securityDefinitions": {"basic": {"type": "basic"}},
    "security": [{"basic": []}],
    "paths": {
        "/items": {
            "post": {
                "parameters": [
                    {"in": "body", "name": "item", "schema": {"properties": {"n": {"default": 3}}}}
                ],
                "responses": {"201": {}},
            }
        },
        "/login": {
            "post": {
                "consumes": ["application/x-www-form-urlencoded"],
                "parameters": [
                    {"in": "formData", "name": "user", "type": "string"},
                    {"in": "formData", "name": "password", "type": "string"},
                ],
            }
        },
        "/upload": {"post": {"parameters": [{"in": "formData", "name": "f", "type": "file"}]}},
    },
}


def coord(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, env={"COLUMNS": "200"})


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def made(text: str) -> Result:
    Path("api.yaml").write_text(text, encoding="utf-8")
    return coord("init", "task.yaml", "--from-openapi", "api.yaml")


def checked(text: str) -> dict[str, Any]:
    """The flow of a task file, which is valid; its arguments are their own names."""
    args = {name: f"<{name}>" for name in (names(text, ".") or set()) - {"base"}}
    Path("checked.yaml").write_text(text, encoding="utf-8")
    valid = coord("validate", "checked.yaml", "--task-args", json.dumps(args))
    assert valid.exit_code == 0, valid.output + text
    document, problems = render(text, ".", args)
    assert not problems
    flow: dict[str, Any] = yaml.safe_load(document)["subtasks"][0]["scenario"]["HttpFlow.run"]
    return flow


def test_operations_that_read_are_a_mix_by_tag():
    said = made(PETS)
    text = Path("task.yaml").read_text(encoding="utf-8")

    flow = checked(text)

    assert said.exit_code == 0, said.output
    assert (
        "3 requests; left out: bodies that are neither JSON nor forms nor multipart (1)"
        in said.output
    )
    assert "--task-args '{token: ..., x_api_key: ...}'" in said.output
    assert "never-written" not in text
    assert flow["base"] == "https://test.pets.example/v1"
    pets, other = flow["mix"]
    bearer = {"Authorization": "Bearer <token>"}
    assert pets["steps"] == [
        {
            **{"name": "GET /pets", "path": "/pets", "expect": 200},
            "query": {"limit": "20", "since": "2026-01-31T12:00:00Z", "kind": ["cat", "dog"]},
            "headers": {"X-Trace": "false", **bearer},
        },
        {"name": "GET /pets/[petId]", "path": "/pets/5", "headers": bearer},
    ]
    assert other["name"] == "other"
    assert other["steps"][0]["headers"] == {"X-Api-Key": "<x_api_key>"}
    assert other["steps"][0]["expect"] == [200, 202]


def test_operations_that_change_data_are_made_once_their_comment_is_taken_away():
    made(PETS)
    text = Path("task.yaml").read_text(encoding="utf-8")

    flow = checked(re.sub(r"(?m)^ *(\{#|#\})\n", "", text))

    changes = flow["mix"][-1]
    assert (changes["name"], changes["weight"]) == ("pets, changes", 1)
    assert [step["name"] for step in changes["steps"]] == ["POST /pets", "DELETE /pets/[petId]"]
    assert changes["steps"][0]["json"] == {
        "name": "Rex {brace}user} #} {{ x }}",
        "born": "2020-01-02",
        "password": "<password>",
        "tags": ["small"],
        "owner": {"n": 1, "ok": True},
    }


def test_swagger_and_services_that_only_change_data():
    said = made(json.dumps(SHOP, indent="\t"))
    text = Path("task.yaml").read_text(encoding="utf-8")

    flow = checked(text)

    assert said.exit_code == 0, said.output
    assert flow["base"] == "https://shop.example/api"
    (branch,) = flow["mix"]
    assert [step.get("json", step.get("form")) for step in branch["steps"]] == [
        {"n": 3},
        {"user": "text", "password": "<password>"},
        None,
    ]
    assert branch["steps"][2]["multipart"] == {"f": {"filename": "f.bin", "size": 1024}}
    assert branch["steps"][0]["headers"] == {"Authorization": "Basic <basic_credentials>"}
    assert "# These operations change data: do you want them made?" in text


LISTS = ["a", "b c", True]
#: Parameters in a query, as a step writes them, by what their description says.
WRITTEN: list[tuple[dict[str, Any], Any, dict[str, Any]]] = [
    ({}, LISTS, {"p": ["a", "b c", "true"]}),
    ({"explode": False}, LISTS, {"p": "a,b c,true"}),
    ({"style": "pipeDelimited", "explode": False}, LISTS, {"p": "a|b c|true"}),
    ({"style": "spaceDelimited"}, ["a", "b"], {"p": "a b"}),
    ({"style": "pipeDelimited", "explode": True}, ["a", "b"], {"p": ["a", "b"]}),
    (
        {"style": "deepObject", "explode": True},
        {"k": 1, "l": False},
        {"p[k]": "1", "p[l]": "false"},
    ),
    ({}, {"k": 1}, {"k": "1"}),
    ({"explode": False}, {"k": 1, "l": "x"}, {"p": "k,1,l,x"}),
    ({"explode": False}, True, {"p": "true"}),
    ({"collectionFormat": "pipes"}, LISTS, {"p": "a|b c|true"}),
    ({"collectionFormat": "multi"}, ["a", "b"], {"p": ["a", "b"]}),
    ({"type": "array"}, ["a", "b"], {"p": "a,b"}),
]


@pytest.mark.parametrize(("style", "value", "expected"), WRITTEN)
def test_lists_and_objects_are_written_in_their_style(style, value, expected):
    assert query_fields({"name": "p", **style}, value) == expected


def test_lists_in_paths_headers_and_queries_of_a_task():
    ids = {"name": "ids", "in": "path", "required": True, "example": ["a/b", "{x}"]}
    fields = {"name": "fields", "in": "query", "explode": False, "example": ["a", "b"]}
    header = {"name": "X-Of", "in": "header", "example": [1, True]}
    operation = {"parameters": [ids, fields, header], "responses": {}}
    made(json.dumps({"openapi": "3.1.0", "paths": {"/things/{ids}": {"get": operation}}}))

    ((step,),) = [branch["steps"] for branch in checked(Path("task.yaml").read_text())["mix"]]

    assert step["path"] == "/things/a%2Fb,%7Bx%7D"
    assert step["query"] == {"fields": "a,b"}
    assert step["headers"] == {"X-Of": "1,true"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "neither the key openapi nor swagger"),
        ("a: [\n}", "is neither JSON nor YAML (line 2)"),
        ("[" * 3000, "is neither JSON nor YAML"),
        ("!!python/object/apply:os.system [ls]", "is neither JSON nor YAML"),
        ("openapi: 4.0.0\npaths: {}", "is OpenAPI 4.0.0; convert it to 3 or 2.0"),
        ("openapi: 3.1.0", "expected a mapping `paths`"),
        ("openapi: 3.1.0\npaths: {}", "no operation that a flow can make"),
        ("openapi: 3.1.0\npaths: {/a: 5}", "paths./a: expected a mapping"),
        ("openapi: 3.1.0\npaths: {/a: {get: []}}", "paths./a.get: expected a mapping"),
        ("openapi: 3.1.0\npaths: {/a: [get]}", "paths./a: expected a mapping of operations"),
        ("openapi: 3.1.0\npaths: {/a: {$ref: other.yaml}}", "bundle the files that it refers to"),
        ("openapi: 3.1.0\npaths: {/a: {$ref: '#/b'}}", "paths./a: #/b is not there; correct the"),
    ],
)
def test_a_malformed_description_is_one_message(text: str, said: str):
    refused = made(text)

    assert refused.exit_code == 2, refused.output
    assert said in refused.output
    assert len(refused.output.splitlines()) == 1
    assert not Path("task.yaml").exists()


def test_hostile_descriptions_make_small_tasks():
    bomb = "\n".join(f"b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]" for n in range(1, 12))
    text = f"""
openapi: 3.1.0
b0: &b0 [x]
{bomb}
servers: [{{url: "//[bad"}}]
tags: 5
paths:
  /a/{{x}}/{{}}:
    parameters: 7
    get:
      tags: {{a: 1}}
      parameters:
        [1, {{name: 5, in: query}}, {{name: z, in: [1]}}, {{name: q, in: query, example: *b11}}]
      responses: [1]
      security: [[]]
      requestBody: {{content: {{application/json: {{schema: {{$ref: "#/loop"}}}}}}}}
loop: {{$ref: "#/loop"}}
"""

    said = made(text.replace("parameters: 7", "parameters: [{$ref: other.yaml}]"))

    assert said.exit_code == 0, said.output
    assert "References to other files are not followed (1)" in Path("task.yaml").read_text("utf-8")
    assert Path("task.yaml").stat().st_size < 20_000
    assert checked(Path("task.yaml").read_text(encoding="utf-8"))["base"] == "http://127.0.0.1:8080"


def test_only_one_source_is_taken():
    both = coord("init", "t.yaml", "--from-har", "a", "--from-openapi", "b")

    assert both.exit_code == 2
    assert "--from-har and --from-openapi cannot be combined" in both.output


CLUSTER = """
swagger: "2.0"
securityDefinitions: {t: {type: apiKey, in: header, name: authorization}}
security: [{t: []}]
paths:
  /api/v1/pods:
    get:
      x-kubernetes-action: list
      parameters: [{name: sort_key, in: query, type: string, default: name}]
      responses: {"200": {}}
    post:
      parameters: [{name: body, in: body, schema: {$ref: "#/definitions/Pod"}}]
  /api/v1/watch/pods: {get: {x-kubernetes-action: watchlist}}
  /watch/{name}: {get: {}}
  /api/v1/pods/exec: {get: {x-kubernetes-action: connect}}
definitions:
  Pod:
    properties:
      topologyKey: {type: string}
      matchLabelKeys: {type: array, items: {type: string}}
      imagePullSecrets: {properties: {name: {type: string}}}
      private_key: {type: string}
      tokens: {type: array, items: {type: string}}
"""


def test_requests_that_do_not_end_are_left_out_and_named():
    said = made(CLUSTER)
    text = Path("task.yaml").read_text(encoding="utf-8")

    assert said.exit_code == 0, said.output
    assert "watches, which do not end (2), connections to containers and proxies (1)" in said.output
    assert "# left out: GET /watch/[name]: watches, which do not end" in text
    (branch,) = checked(text)["mix"]
    assert branch["steps"] == [
        {
            **{"name": "GET /api/v1/pods", "path": "/api/v1/pods", "expect": 200},
            **{"query": {"sort_key": "name"}, "headers": {"authorization": "<authorization>"}},
        }
    ]


def test_the_first_lines_have_the_arguments_that_the_task_takes_and_no_others():
    said = made(CLUSTER)
    text = Path("task.yaml").read_text(encoding="utf-8")

    told = [line for line in text.splitlines() if line.startswith("# task argument")]

    assert told == ["# task argument authorization: the header authorization, as in Bearer TOKEN"]
    assert "--task-args '{authorization: ...}'" in said.output
    assert "# They take further task arguments: private_key, tokens" in text
    flow = checked(re.sub(r"(?m)^ *(\{#|#\})\n", "", text))
    assert flow["mix"][1]["steps"][0]["json"] == {
        "topologyKey": "text",
        "matchLabelKeys": ["text"],
        "imagePullSecrets": {"name": "text"},
        "private_key": "<private_key>",
        "tokens": ["<tokens>"],
    }
