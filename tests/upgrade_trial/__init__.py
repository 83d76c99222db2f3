"""Upgrades of the lab's Keystone and Glance, judged by `osbench-coord gate`."""
