"""Streams: objects whose values change, carried down trees of brokers within tolerances.

`flow` takes versions down the trees, `demands` takes tolerances up. `uplinks` and
`downlinks` are the two ends of a link between a parent and a child. `announcements` brings
objects and their followers together.
"""
