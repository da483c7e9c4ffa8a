"""LoCoMo: ten long two-person conversations and questions about them (docs/methods.md E.1)."""
