"""The configuration of osbench: its options, how its files are read, and where logs are written."""

from osbench.common.config.late_packages import load_late

# before any module imports oslo.config
load_late()
