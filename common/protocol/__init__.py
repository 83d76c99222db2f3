"""Messages between coordinator and workers: formats, signatures, encryption, transport."""
