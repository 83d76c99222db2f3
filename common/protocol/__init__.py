"""Messages between coordinator and workers, and what carries and protects them."""
