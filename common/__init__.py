"""What both sides speak: configuration, messages, task model, plug-in interfaces."""
