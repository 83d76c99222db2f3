"""SLA criteria, one per file: plug-ins that judge the results of a workload."""
