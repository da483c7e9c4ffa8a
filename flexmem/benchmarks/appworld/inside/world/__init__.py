"""A small world of our own, made with AppWorld's own models at run time: 24 tasks that need no download.

This package runs under AppWorld's interpreter (``python -m world`` with its parent folder on the path) and imports only
the standard library and AppWorld. Nothing that it makes may be published: it holds AppWorld's API documentation.
"""
