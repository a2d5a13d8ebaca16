"""The HTTP service, and the inspector in the browser: `create_app` makes them one ASGI application."""
