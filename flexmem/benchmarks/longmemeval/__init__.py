"""LongMemEval: questions about a user's many chats with an assistant, each with a haystack of its own (docs/methods.md
E.2).
"""
