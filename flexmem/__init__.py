"""flexmem: memory methods for LLM agents, and the harness that compares them.

`flexmem.memory` is the library, `flexmem.benchmarks` the data, `flexmem.sweep` the engine on Ray, `flexmem.analysis`
what the results mean. Nothing is imported here: each part loads what it needs.
"""
