"""Texts of others in a table.

- `cell(text)`: a text for a cell of CSV, harmless in a spreadsheet and on a terminal
"""

from osbench.common.text.spreadsheet import cell

__all__ = ["cell"]
