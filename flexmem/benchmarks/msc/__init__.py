"""Multi-Session Chat: conversations of two people over several sessions, without questions (ParlAI's msc v0.1).

No benchmark: histories to train on. `flexmem.benchmarks.msc.corpus.load` reads them.
"""
