"""Templates are filled in as Rally fills them in, and say what they miss."""

import os
import resource
import signal

import pytest

from helpers.hostile import bounded
from osbench.common.files import named_files
from osbench.coordinator.task.taskfile import template_bounds
from osbench.coordinator.task.taskfile.template import names, render


@pytest.fixture
def filled(tmp_path):
    def text(template, **args):
        result, problems = render(template, str(tmp_path), args)
        assert [str(problem) for problem in problems] == []
        return result

    return text


@pytest.fixture
def fault(tmp_path):
    def problem(template, **args):
        _, problems = render(template, str(tmp_path), args)
        (found,) = problems
        return str(found)

    return problem


def test_rallys_functions(filled):
    template = "{{ min(2, 1) }} {{ max(2, 3) }} {{ ceil(1.2) }} {{ round(1.6) }} {{ ceil('2') }}"

    assert filled(template) == "1 3 2 2 2"


def test_arguments_are_objects_of_yaml(filled):
    assert filled("{% for x in xs %}{{ x + 1 }},{% endfor %}", xs=[1, 2]) == "2,3,"


@pytest.mark.parametrize(
    ("template", "result"),
    [
        ("{% set x = x or 1 %}{{ x }}", "1"),
        ("{% set x = x | default(1) %}{{ x }}", "1"),
        ("{{ x | default(1) }}", "1"),
        ("{{ x | d(1) }}", "1"),
        ("{{ x or 1 }}", "1"),
        ("{% if x is defined %}{{ x }}{% else %}1{% endif %}", "1"),
        ("{% set x = 1 %}{{ x }}", "1"),
        ("{% for x in [1] %}{{ x }}{% endfor %}", "1"),
        ("{% macro x(y) %}{{ y }}{% endmacro %}{{ x(1) }}", "1"),
        ("{% for x in range(1, 2) %}{{ x }}{% endfor %}", "1"),
    ],
)
def test_what_has_a_default_need_not_be_given(filled, template, result):
    assert filled(template) == result


def test_a_given_value_goes_before_the_default(filled):
    assert filled("{% set x = x or 1 %}{{ x }}", x=2) == "2"


def test_all_missing_arguments_are_one_problem_that_says_how_to_give_them(fault):
    message = fault("{{ image }} {{ flavor }} {{ times }} {{ given }}", given=1)

    assert "task arguments flavor, image, times:" in message
    assert "--task-args '{flavor: ..., image: ..., times: ...}'" in message
    assert "--task-args-file" in message
    assert "{% set flavor = flavor or ... %}" in message


def test_an_argument_may_have_the_name_of_a_function(filled, fault):
    assert filled("{{ env }}", env="prod") == "prod"
    assert "task argument env:" in fault("{{ env }}")


def test_a_default_in_one_place_is_none_in_another(fault):
    assert "task argument x:" in fault("{{ x | default(1) }} {{ x }}")


def test_files_are_included_from_the_folder(filled, tmp_path):
    (tmp_path / "part.txt").write_text("{{ x }}{{ y }}")
    (tmp_path / "macros.txt").write_text("{% macro twice(a) %}{{ a }}{{ a }}{% endmacro %}")

    result = filled(
        '{% from "macros.txt" import twice %}{% set y = 2 %}{% include "part.txt" %}{{ twice(x) }}',
        x=1,
    )

    assert result == "1211"


def test_included_files_say_what_they_miss(fault, tmp_path):
    (tmp_path / "part.txt").write_text("{{ image }} {{ y }}")

    message = fault('{% set y = 2 %}{% include ["absent.txt", "part.txt"] %}')

    assert "task argument image:" in message


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("a\n{% if %}", ["line 2", "template:"]),
        ("a\n\n{{ 1 / 0 }}", ["line 3", "ZeroDivisionError"]),
        ("{{ x.y.z }}", ["line 1", "UndefinedError"]),
        ('{% include "absent.txt" %}', ["absent.txt", "no file"]),
        ("{{ ''.__class__.__mro__ }}", ["line 1", "SecurityError"]),
        ("{{ ceil('a') }}", ["line 1", "ValueError"]),
    ],
)
def test_templates_that_fail_say_where(fault, template, words):
    message = fault(template, x={})

    assert all(word in message for word in words)


MANY = "{% for i in range(99999) %}{% for j in range(99999) %}"
END = "{% endfor %}{% endfor %}"


@pytest.mark.parametrize(
    "expression",
    [
        "'x'.ljust(10**10)",
        "'x'|center(10**10)",
        "'%10000000000d' % 1",
        "'{:10000000000}'.format(1)",
        "('a'*10**6).replace('a', 'b'*10**6)",
        "['x']|batch(10**10, 'y')|list",
        "range(99999)|map('string')|join('x'*10**6)",
    ],
)
def test_an_expression_does_not_fill_the_memory(fault, expression):
    with bounded(64 << 20):
        message = fault(f"{{{{ {expression} }}}}")

    assert "template: takes more than 512 MiB of memory" in message


@pytest.mark.parametrize("made", ["'x'", "[1]"])
def test_what_doubles_does_not_fill_the_memory(fault, monkeypatch, made):
    monkeypatch.setattr(template_bounds, "MEMORY_BYTES", 32 << 20)
    grows = "{% set n.x = n.x + n.x %}"
    template = f"{{% set n = namespace(x={made}) %}}{{% for i in range(99) %}}{grows}{{% endfor %}}"

    assert "template: takes more than 32 MiB of memory" in fault(template)


@pytest.mark.parametrize(
    "template", ["{{ 'x' * 10**10 }}", "{{ 9 ** 999999 }}", "{{ 9 ** 999 * 9 ** 999 }}"]
)
def test_products_and_powers_are_small(fault, template):
    assert "OverflowError: a p" in fault(template)


@pytest.mark.parametrize("template", [f"{MANY}{'x' * 1000}{END}", "{{ 'x' * 10**6 }}" * 17])
def test_the_text_of_a_template_is_bounded(fault, template):
    with bounded(256 << 20):
        assert "template: gives more than 16,777,216 characters" in fault(template)


@pytest.mark.parametrize(
    "template",
    [
        f"{MANY}{{% set x = i %}}{END}",
        "{% macro m(n) %}{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}{% endmacro %}{{ m(60) }}",
        "{{ lipsum(n=10**8) }}",
    ],
)
def test_a_template_that_does_not_end_is_stopped(fault, monkeypatch, template):
    monkeypatch.setattr(template_bounds, "CPU_S", 0.05)

    assert "template: takes more than 0.05 s of CPU; check that its loops end" in fault(template)


@pytest.mark.parametrize(
    "template",
    [
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% include 'self' %}",
        "{{ " + "(" * 100_000,
        "{% for x in [1] recursive %}{{ loop([1, 1]) }}{% endfor %}",
    ],
)
def test_a_template_of_itself_is_refused(fault, tmp_path, template):
    (tmp_path / "self").write_text("{% include 'self' %}")

    assert "template: is nested too deeply, or includes or calls itself" in fault(template)
    names(template, str(tmp_path))


def test_limits_of_the_process_are_as_before(filled, fault):
    before = resource.getrlimit(resource.RLIMIT_AS), signal.getsignal(signal.SIGVTALRM)

    filled("fine")
    fault("{{ 'x'.ljust(10**10) }}")

    assert (resource.getrlimit(resource.RLIMIT_AS), signal.getsignal(signal.SIGVTALRM)) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_files_that_are_included_are_bounded(fault, monkeypatch, tmp_path):
    monkeypatch.setattr(named_files, "PATIENCE_S", 0.01)
    (tmp_path / "zero").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe")

    assert "zero: is larger than 16 MiB" in fault("{% include 'zero' %}")
    assert "pipe: is a pipe that no process writes to" in fault("{% include 'pipe' %}")
    assert "there is no file '../x'" in fault("{% include '../x' %}")
    assert "there is no file 'x\\x00'" in fault("{% include 'x\\0' %}")


def test_variables_of_the_environment(filled, fault, monkeypatch):
    monkeypatch.setenv("TARGET", "http://shop")
    monkeypatch.delenv("ABSENT", raising=False)

    assert filled("{{ env('TARGET') }} {{ env('ABSENT', 'x') }}") == "http://shop x"
    assert fault("a\n{{ env('ABSENT') }}") == (
        "line 2: template: the environment variable ABSENT is not set: set it, or give a default,"
        " as in env('ABSENT', '...')"
    )


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ("a: 1", set()),
        (
            "{% set x = x or 1 %}{{ x }}{{ y | default(2) }}{{ min(1, 2) }}{{ env('z') }}",
            {"x", "y"},
        ),
        ("{% for i in items %}{{ i }}{% endfor %}", {"items"}),
        ("{% if n is defined %}1{% endif %}", {"n"}),
        ("{{ env }} {{ max(1, 2) }} {{ min }}", {"env", "min"}),
        ('{{ y }}{% include "part.txt" %}', {"y", "image"}),
        ('{% extends "part.txt" %}', {"image"}),
    ],
)
def test_the_arguments_of_a_template_and_of_its_files(tmp_path, template, found):
    (tmp_path / "part.txt").write_text('{{ image }}{% include "part.txt" %}')

    assert names(template, str(tmp_path)) == found


@pytest.mark.parametrize(
    "template",
    [
        "{% if %}",
        "{% include x %}",
        "{% block a %}{% endblock %}{% block a %}{% endblock %}",
        "{% include 'binary' %}",
    ],
)
def test_the_arguments_of_some_templates_are_not_known(tmp_path, template):
    (tmp_path / "binary").write_bytes(b"\xff")

    assert names(template, str(tmp_path)) is None
