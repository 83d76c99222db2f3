"""The commands of `osbench-coord`: one module per command."""
