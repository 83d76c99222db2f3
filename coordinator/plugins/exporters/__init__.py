"""The built-in exporters, one per file: plug-ins that write or send a finished run's results."""
