"""JSON schemas of task files, and what values and errors mean to them."""
