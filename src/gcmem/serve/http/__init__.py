"""REST: a memory behind keys, limits and metrics. `app.make_app` is the application."""
