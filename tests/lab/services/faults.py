"""What can go wrong with the lab."""


class Unavailable(Exception):
    """Something that the lab needs is not on this machine and cannot be had."""


class NotStarted(Exception):
    """A service of the lab did not start; the message ends with its last output."""
