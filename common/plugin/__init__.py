"""The interfaces of plug-ins, and how plug-ins are found, named and checked."""
