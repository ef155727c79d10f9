"""The messages between brokers, clients and hosts: one file for each concern."""
