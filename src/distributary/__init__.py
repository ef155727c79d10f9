"""distributary: publish once, and every subscriber gets what it asked for.

The network itself decides who attaches to which broker, which tree each stream
follows, and at which broker each format conversion runs.
"""

__version__ = "0.1.0"
