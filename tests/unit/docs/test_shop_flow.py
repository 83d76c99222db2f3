"""One flow of a shop in four forms: what they share, their lengths, what guides show of them."""

from __future__ import annotations

import ast
import re

import pytest
import yaml

from helpers.readme import REPOSITORY, files, text

FLOW = "samples/shop_flow"
LOCUST, K6 = f"{FLOW}/locustfile.py", f"{FLOW}/k6.js"
CLASS, TASK = f"{FLOW}/shopper.py", f"{FLOW}/shopper.yaml"
WITHOUT_CODE = "samples/tasks/shop_flow.yaml"
PAGE = "docs/coming-from-locust.md"

FORMS = {
    "Locust file": (LOCUST,),
    "k6 script": (K6,),
    "osbench, class and task": (CLASS, TASK),
    "osbench, task without code": (WITHOUT_CODE,),
}


def docstrings(source: str) -> set[int]:
    """The lines of docstrings of a Python file."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            said = node.body[0]
            lines.update(range(said.lineno, (said.end_lineno or said.lineno) + 1))
    return lines


def length(path: str) -> int:
    """Lines of a file without blank ones, comments and docstrings."""
    source = text(path)
    left_out = docstrings(source) if path.endswith(".py") else set()
    return sum(
        1
        for number, line in enumerate(source.splitlines(), start=1)
        if line.strip() and number not in left_out and not re.match(r"\s*(#|//)", line)
    )


@pytest.fixture(scope="module")
def lengths() -> dict[str, int]:
    """Lines of each form."""
    return {form: sum(map(length, paths)) for form, paths in FORMS.items()}


def test_lines_are_counted_without_blank_ones_comments_and_docstrings(tmp_path):
    file = tmp_path / "some.py"
    file.write_text(
        '"""Said\n\non four\nlines."""\n\n# a comment\nX = """a\nb"""\n\ndef f():\n    """D."""\n'
    )

    # X, its second line, and def
    assert length(str(file)) == 3


def test_no_form_of_osbench_has_more_lines_than_locusts(lengths):
    assert lengths["osbench, class and task"] <= lengths["Locust file"]
    assert lengths["osbench, task without code"] <= lengths["Locust file"]


@pytest.mark.parametrize("form", FORMS)
def test_the_page_says_how_long_each_form_is(form, lengths):
    assert f"| {form} | {lengths[form]} |" in text(PAGE)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_the_same_steps(form):
    written = "\n".join(map(text, FORMS[form]))

    for step in ("login", "list", "item", "order"):
        assert re.search(rf"name[=:] ?\"?{step}\b", written), step
    for path in ("/login", "/items", "/items/", "/orders"):
        assert path in written, path
    assert "customers.csv" in written


def test_the_locust_file_has_the_weights_and_the_threshold():
    tree = ast.parse(text(LOCUST), LOCUST)
    compile(tree, LOCUST, "exec")
    (user,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    tasks = {
        node.name: [ast.unparse(mark) for mark in node.decorator_list]
        for node in user.body
        if isinstance(node, ast.FunctionDef)
    }

    assert tasks == {"on_start": [], "look": ["task(3)"], "buy": ["task"]}
    assert "get_response_time_percentile(0.95) > 2000" in text(LOCUST)


def test_the_k6_script_has_the_same_load_weights_and_thresholds():
    script = text(K6)
    tasks = [yaml.safe_load(text(path)) for path in (TASK, WITHOUT_CODE)]

    for wanted in ("Math.random() < 0.75", '"http_req_duration{name:order}": ["p(95)<2000"]'):
        assert wanted in script
    for task in tasks:
        (workload,) = task["subtasks"]
        assert workload["runner"] == {"constant": {"times": 100, "concurrency": 4}}
        assert workload["think"] == {"min": "10ms", "max": "50ms"}
        assert workload["sla"]["percentile"] == {"p": 95, "max_s": 2, "action": "buy > order"}
        assert workload["sla"]["failure_rate"] == {"max": 0}
    for wanted in ("vus: 4,", "iterations: 100,", "sleep(0.01 + Math.random() * 0.04)"):
        assert wanted in script


def test_guides_show_the_files_as_they_are():
    shown = files(PAGE)

    assert set(shown) == {CLASS, TASK}
    for path, body in shown.items():
        assert (REPOSITORY / path).read_text("utf-8") == body, path
    assert f"```yaml\n{text(WITHOUT_CODE)}```" in text("docs/flows.md")
