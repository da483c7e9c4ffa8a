"""A-Mem (arXiv 2502.12110): linked notes whose context and tags later notes may change (docs/methods.md B.2)."""
