"""One file for each schema, in order."""
