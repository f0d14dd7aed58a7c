"""Serving a memory to others: REST (`http`), MCP (`mcp`), a dashboard (`web`).

`gcmem.serve.http.app.make_app` is the application, `gcmem.serve.http.server.listen` runs it. The
keys need nothing beyond the standard library; the rest needs `pip install 'gcmem[serve]'`.
"""
