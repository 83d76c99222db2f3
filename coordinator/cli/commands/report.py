"""The command `report`: writes a run in one or several formats."""

from __future__ import annotations

import json
from typing import Any

import click

from osbench.common.errors import UsageError
from osbench.coordinator.cli.base import CommandSettings, with_settings
from osbench.coordinator.cli.export_options import ExportOptions, export_options
from osbench.coordinator.report.exporting import Export
from osbench.coordinator.report.finished_run import SUMMARY, read_summary, unfinished
from osbench.coordinator.report.stored_run import StoredRun
from osbench.coordinator.storage import failure
from osbench.coordinator.storage.run_directory import RunDirectory
