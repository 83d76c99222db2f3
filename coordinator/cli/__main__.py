"""Lets `python -m osbench.coordinator.cli` be the command `osbench-coord`."""

from osbench.coordinator.cli import main

main(prog_name="osbench-coord")
