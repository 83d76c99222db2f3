"""Reads the XML of S3 within bounds: no entities, no document types, limited depth and size."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

#: Most bytes of a document, and levels of it.
MOST_BYTES = 16 << 20
DEPTH = 16


@dataclass(slots=True)
class Element:
    """An element of a document: its name without namespace, its text, its elements."""

    name: str
    text: str = ""
    inner: list[Element] = field(default_factory=list)

    def find(self, name: str) -> str:
        """Return the text of the first element `name` in this one, without blanks; "" if none."""
        return next((one.text.strip() for one in self.inner if one.name == name), "")

    def all(self, name: str) -> list[Element]:
        """Return the elements `name` in this one, in order."""
        return [one for one in self.inner if one.name == name]


class _Tree:
    """Builds elements from the events of the parser."""

    def __init__(self) -> None:
        self.root: Element | None = None
        self._open: list[Element] = []
        self._texts: list[list[str]] = []

    def start(self, name: str, _: object) -> None:
        if len(self._open) >= DEPTH:
            raise ValueError(f"more than {DEPTH} levels of XML")
        made = Element(name.rpartition("\n")[2])
        if self._open:
            self._open[-1].inner.append(made)
        else:
            self.root = made
        self._open.append(made)
        self._texts.append([])

    def end(self, _: str) -> None:
        self._open.pop().text = "".join(self._texts.pop())

    def text(self, data: str) -> None:
        self._texts[-1].append(data)

    def refuse(self, *_: object) -> None:
        raise ValueError("a document type, which may define entities")


def read_xml(document: bytes) -> Element:
    """Return the root element of a document. Raises ValueError with the reason."""
    if len(document) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES >> 20} MiB of XML")
    tree = _Tree()
    parser = expat.ParserCreate(namespace_separator="\n")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = tree.refuse
    parser.EntityDeclHandler = tree.refuse
    parser.StartElementHandler = tree.start
    parser.EndElementHandler = tree.end
    parser.CharacterDataHandler = tree.text
    try:
        parser.Parse(document, True)
    except expat.ExpatError as error:
        raise ValueError(f"not XML: {error}") from None
    assert tree.root is not None
    return tree.root


def s3_error(document: bytes) -> str:
    """Return "Code: message" of an error of S3, at most 300 characters; "" if it is none.

    <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>
    """
    try:
        root = read_xml(document)
    except ValueError:
        return ""
    if root.name != "Error":
        return ""
    code, message = root.find("Code"), " ".join(root.find("Message").split())
    return ": ".join(part for part in (code, message) if part)[:300]
