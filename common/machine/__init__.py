"""The machine: clocks, processors, this Python, and figures of this process."""
