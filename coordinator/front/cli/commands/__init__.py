"""The commands of `osbench-coord`: one module per command or group of them."""
