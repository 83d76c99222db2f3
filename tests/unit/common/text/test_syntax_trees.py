"""Syntax trees, also while a collection of garbage makes others."""

import ast
import gc
from pathlib import Path

import pytest

from osbench.common.text import syntax_trees
from osbench.common.text.syntax_trees import first_line, syntax_tree

SOURCE = Path(syntax_trees.__file__).read_text()


class Formats:
    """Garbage whose finalizer makes a tree, as one that formats a traceback does."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        ast.parse("a + b", mode="eval")


@pytest.fixture
def collected():
    """Leave no garbage to later tests: what reports them makes trees too."""
    yield
    gc.collect()


@pytest.mark.usefixtures("collected")
def test_a_tree_is_whole_while_finalizers_make_others():
    whole = ast.dump(ast.parse(SOURCE))

    for _ in range(100):
        for _ in range(20):
            Formats()
        found = syntax_tree(SOURCE)

        assert ast.dump(found) == whole


def test_a_tree_is_tried_again_where_the_interpreter_lost_count(monkeypatch):
    parse = ast.parse
    lost = [SystemError("AST constructor recursion depth mismatch")] * 3

    def parse_at_last(source, file):
        if lost:
            raise lost.pop()
        return parse(source, file)

    monkeypatch.setattr(ast, "parse", parse_at_last)

    assert ast.dump(syntax_tree("a = 1")) == ast.dump(parse("a = 1"))


def test_a_tree_that_never_comes_is_told(monkeypatch):
    def never(source, file):
        raise SystemError(f"{file}: too deep")

    monkeypatch.setattr(ast, "parse", never)

    with pytest.raises(SystemError, match=r"shop\.py: too deep"):
        syntax_tree("a = 1", "shop.py")


def test_a_text_that_is_not_python_is_told_as_such():
    with pytest.raises(SyntaxError):
        syntax_tree("class", "shop.py")


def test_the_line_at_which_a_class_begins():
    lines = Path(__file__).read_text().splitlines()

    assert lines[first_line(Formats) - 1] == "class Formats:"
