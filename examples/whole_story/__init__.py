"""The whole story: from history to plans, and from plans to what subscribers receive."""
