"""The coordinator's side of a cloud: records, checks, resources that runs have left."""
