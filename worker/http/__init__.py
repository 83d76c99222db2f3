"""HTTP clients for the requests of iterations, which record the times of each request."""
