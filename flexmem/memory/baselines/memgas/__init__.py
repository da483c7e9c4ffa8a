"""MemGAS: sessions at four granularities, linked by similarity and ranked over the links (docs/methods.md B.8)."""
