"""`make chaos`: runs under random faults, judged by the server that they put under load."""
