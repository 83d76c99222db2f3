"""Makes tasks with `HttpFlow.run` from HAR files, OpenAPI descriptions and access logs."""
