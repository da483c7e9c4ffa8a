"""PersonaMem: multiple-choice questions about what an assistant should know of its user (docs/methods.md E.2b)."""
