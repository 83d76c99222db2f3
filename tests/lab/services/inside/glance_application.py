"""Glance's WSGI application, whose transactions on SQLite wait for their turn to write.

An import writes in a thread other than the API's. oslo.db begins transactions that read first and
write then: of two such SQLite refuses one at once, however long it may wait. Glance answers HTTP
500 then, or drops the import without a word, its image `uploading` for ever.
"""

from __future__ import annotations

from glance.wsgi.api import application
from sqlalchemy import event
from sqlalchemy.engine import Engine


@event.listens_for(Engine, "before_cursor_execute", retval=True)
def _write_from_the_beginning(_conn, _cursor, statement, parameters, _context, _many):
    return ("BEGIN IMMEDIATE" if statement == "BEGIN" else statement), parameters


__all__ = ["application"]
