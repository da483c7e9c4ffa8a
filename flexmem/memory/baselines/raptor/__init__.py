"""RAPTOR: a tree of summaries over clusters of pieces (docs/methods.md B.8)."""
