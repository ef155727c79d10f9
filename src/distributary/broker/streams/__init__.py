"""Streams: objects whose values change, carried down trees of brokers within tolerances.

`stream` takes versions down the trees and tolerances up. `tree_links` has the two ends of a link
between a parent and a child. `streams` brings objects and their followers together.
"""
