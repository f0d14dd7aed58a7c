"""Serving a memory to others: REST with keys, limits and metrics, and a dashboard.

`gcmem.serve.app.make_app` is the application, `gcmem.serve.server.listen` runs it. The keys need
nothing beyond the standard library; the rest needs `pip install 'gcmem[serve]'`.
"""
