"""The console: the web page of an overlay.

Static files, and the routes that serve them. All that it shows comes from the public interface of
the gateway, by the session of whoever looks at it.
"""

__all__ = ["ADDRESS"]

ADDRESS = "/console"
"""Where the console is."""
