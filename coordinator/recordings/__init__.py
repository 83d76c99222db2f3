"""Tasks with `HttpFlow.run`, made from a browser's recording or a service's description."""
