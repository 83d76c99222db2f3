"""Makes Zaqar's tables from its models in the database of a URL, the argument.

Its migrations speak MySQL's dialect: `alter table ... change column` is none of SQLite's.
"""

from __future__ import annotations

import sys

import sqlalchemy
from zaqar.storage.sqlalchemy import tables

tables.metadata.create_all(sqlalchemy.create_engine(sys.argv[1]))
