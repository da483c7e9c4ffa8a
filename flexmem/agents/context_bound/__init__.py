"""The context-bound agent: a rule that acts on nothing but what its context shows (docs/context-agent.md).

It follows a plan, a program cut into steps, and needs for each step what a competent agent would need: the names of
variables, documentation of calls, values that are read. What its memory lost it has to fetch again. So it measures what
a memory keeps at a budget, and what losing it costs; it says nothing of how a language model would do.
"""
