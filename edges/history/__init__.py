"""Compares runs with runs, keeps them in archives and other systems, and plans the next one."""
