"""Files that others write: bounded, named in messages, encrypted, in the forms of YAML and JSON."""
