"""Makes `python -m osbench.coordinator.cli` the command `osbench-coord`."""

from osbench.coordinator.cli import main

main(prog_name="osbench-coord")
