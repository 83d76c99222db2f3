"""Tasks with `HttpFlow.run`, made of what a browser recorded or a service describes."""
