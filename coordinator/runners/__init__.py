"""The built-in runners, one per file: functions from elapsed time to the load to offer."""
