"""Ray actors, each with a client that implements a port. Nothing else in the package knows Ray."""
