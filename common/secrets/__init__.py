"""What is a secret, and how it is masked."""
