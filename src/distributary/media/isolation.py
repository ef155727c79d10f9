"""How well a worker is contained, which depends on the system it runs on."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Isolation"]


@dataclass(frozen=True)
class Isolation:
    """What keeps a worker from doing harm, beyond being a process that can be killed.

    Attributes
    ----------
    no_network
        It has a network of its own with nothing in it.
    no_calls
        The kernel refuses it sockets, other programs and other processes, what would change
        the modes, owners and times of files, and memory that outlives it.
    no_writing
        It can write in its own directory alone.
    no_signals
        The kernel keeps its signals to itself, by whatever way it may send one; without that,
        `no_calls` refuses the ways that are known.
    no_privileges
        It has no privileges, whoever its caller is, and gains none.
    ends_with_caller
        The system ends it when its caller ends, however that happens.
    memory_limited
        Its memory is limited.
    """

    no_network: bool = False
    no_calls: bool = False
    no_writing: bool = False
    no_signals: bool = False
    no_privileges: bool = False
    ends_with_caller: bool = False
    memory_limited: bool = False
