"""Reads YAML with limits on size and depth: a short alias may stand for a huge value."""

from __future__ import annotations

from typing import Any

import yaml

#: Characters of a document.
CHARACTERS = 16 << 20
#: Values of a document in which each alias is written out, and levels of lists and maps.
NODES = 1_000_000
LEVELS = 64


#: Prefix of the tags that YAML has shorthands for.
_STANDARD = "tag:yaml.org,2002:"
_BOOL, _TEXT = f"{_STANDARD}bool", f"{_STANDARD}str"
#: Words that are true or false in YAML 1.1 only.
_WORDS = frozenset({"on", "off", "yes", "no"})


class YamlBoundError(yaml.YAMLError):
    """Raised for a YAML document that is too large or too deep, or has an unreadable value."""


class _BoundedLoader(yaml.SafeLoader):
    """A safe loader that stops at NODES values and at LEVELS levels of nested lists and maps."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._levels = 0
        self._nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return the next node of the document; PyYAML calls it. Counts nodes and levels.

        Raises YamlBoundError beyond a limit, yaml.YAMLError if the text is malformed.
        """
        self._levels += 1
        self._nodes += 1
        if self._nodes > NODES:
            raise YamlBoundError(f"it has more than {NODES:,} values; shorten or split it")
        if self._levels > LEVELS + 1:
            raise YamlBoundError(f"it is nested deeper than {LEVELS} levels; use fewer levels")
        node: yaml.Node | None = super().compose_node(parent, index)
        self._levels -= 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of a node.

        Raises yaml.YAMLError if it cannot be of its tag, such as a list tagged !!int, or
        2026-99-99, which YAML takes for a date.
        """
        try:
            return super().construct_object(node, deep=deep)
        except (AttributeError, LookupError, ValueError, OverflowError):
            tag = node.tag.replace(_STANDARD, "!!")
            said = f"a value does not match its tag {tag}; correct it, or put it in quotes"
            raise yaml.constructor.ConstructorError(None, None, said, node.start_mark) from None

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Return the next mapping node; its keys on, off, yes and no stay strings.

        YAML 1.1 would read them as booleans.
        """
        node = super().compose_mapping_node(anchor)
        for key, _ in node.value:
            if key.tag == _BOOL and key.value.lower() in _WORDS:
                key.tag = _TEXT
        return node


def load_yaml(text: str) -> Any:
    """Return the value of a YAML document; None if it is empty.

    Raises yaml.YAMLError if it is malformed, holds several documents, an alias of itself or an
    invalid value, or exceeds the limits.
    """
    try:
        loader = open_yaml(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            if check_bounds(node):
                raise YamlBoundError("it holds an alias of itself; remove it")
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except (ValueError, OverflowError) as error:
        raise YamlBoundError(
            f"it holds a value that YAML cannot read: {error}; put it in quotes"
        ) from None
    except RecursionError:
        raise YamlBoundError("it is nested too deeply; use fewer levels") from None


def open_yaml(text: str, most: int = CHARACTERS) -> yaml.SafeLoader:
    """Return a loader of `text` with limits NODES and LEVELS; an alias counts as one value.

    Raises yaml.YAMLError if `text` has more than `most` characters or characters YAML forbids.
    """
    if len(text) > most:
        raise YamlBoundError(f"it is longer than {most:,} characters; shorten or split it")
    try:
        return _BoundedLoader(text)
    except yaml.reader.ReaderError as error:
        place = f"line {text.count(chr(10), 0, error.position) + 1}"
        raise YamlBoundError(f"{place} has an unprintable character; remove it") from None


def check_bounds(node: yaml.Node) -> bool:
    """Check the limits of a composed node; return whether it holds an alias of itself.

    Raises yaml.YAMLError if it has more than NODES values, each alias written out, or more than
    LEVELS levels; RecursionError if it is nested very deeply.
    """
    measure = _Measure()
    size, levels = measure.of(node)
    if size > NODES:
        raise YamlBoundError(
            f"it has more than {NODES:,} values with its aliases expanded; shorten or split it"
        )
    if levels > LEVELS:
        raise YamlBoundError(f"it is nested deeper than {LEVELS} levels; use fewer levels")
    return measure.loops


class _Measure:
    """Counts the values and levels of nodes, as if each alias were written out.

    `loops` becomes true if a node holds an alias of itself, which counts as one value.
    """

    def __init__(self) -> None:
        self.loops = False
        #: By id of a node; None while it is measured.
        self._known: dict[int, tuple[int, int] | None] = {}

    def of(self, node: yaml.Node) -> tuple[int, int]:
        """Return the number of values and of levels of a node; a scalar has 1 and 0."""
        if not isinstance(node, yaml.CollectionNode):
            return 1, 0
        if id(node) in self._known:
            known = self._known[id(node)]
            self.loops |= known is None
            return known or (1, 1)
        self._known[id(node)] = None
        size, levels = 1, 0
        for item in node.value:
            for one in item if isinstance(item, tuple) else (item,):
                more, deeper = self.of(one)
                size, levels = size + more, max(levels, deeper)
        found = self._known[id(node)] = size, levels + 1
        return found
