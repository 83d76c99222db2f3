"""Code of coordinator and workers: configuration, messages, task model, plug-in interfaces."""
