"""Consoles of rich: they escape foreign text, and end quietly if the pipe is closed."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable
from typing import IO, Any, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from osbench.common.text.escaping import escaped
from osbench.coordinator.front.cli.group import let_go


class PipedConsole(Console):
    """A rich console that escapes foreign text.

    It goes on silently once its reader has closed the pipe, as in `run | head`.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the parts of a renderable; characters that could steer a terminal are escaped."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else escaped(segment.text, breaks=True)
            yield segment if text is segment.text else segment._replace(text=text)

    def on_broken_pipe(self) -> None:
        """Discard all further output; rich itself would end the command with code 1."""
        self.quiet = True
        let_go(self.file)


class _Trimmed(io.TextIOBase):
    """Standard output that drops blanks at the ends of lines, with which rich fills them."""

    def write(self, text: str) -> int:
        """Write text without blanks at the ends of its lines; return the count of characters."""
        return sys.stdout.write("\n".join(line.rstrip(" ") for line in text.split("\n")))

    def flush(self) -> None:
        """Write buffered text."""
        sys.stdout.flush()

    def fileno(self) -> int:
        """Return the file descriptor of standard output."""
        return sys.stdout.fileno()


def piped_console(wide: int, **settings: Any) -> Console:
    """Return a rich console for stdout; `settings` go to its constructor.

    On a terminal it is as wide as that. For files and pipes its width is the environment variable
    COLUMNS, else `wide`, in characters, and lines have no blanks at the end.
    """
    if sys.stdout.isatty():
        return PipedConsole(**settings)
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) else wide
    return PipedConsole(width=width, file=cast("IO[str]", _Trimmed()), **settings)
