"""AppWorld: tasks in a world of apps, acted upon by code (arXiv 2407.18901)."""
