"""The context-bound agent as a benchmark: plans cut from solutions, in AppWorld or in recordings of it
(docs/context-agent.md).
"""
