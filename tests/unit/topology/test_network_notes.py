"""Networks: delays between many nodes, and what is said about guesses."""

from __future__ import annotations

import numpy as np

from distributary.topology.network import Network


def chain(count: int) -> Network:
    ends = np.arange(count)
    names = tuple(f"n{k}" for k in ends)
    return Network(names, np.column_stack([ends[:-1], ends[1:]]), np.full(count - 1, 0.25))


def test_delays_between_more_nodes_than_are_worked_out_at_once() -> None:
    """Along a chain, delays are distances; whichever nodes are asked for, in whichever order."""
    network = chain(601)
    nodes = np.random.default_rng(1).permutation(601)[:550]
    distances = np.abs(nodes[:, None] - nodes[None, :]) * 0.25
    assert np.array_equal(network.delays_between(nodes), distances)


def test_no_nodes_have_no_delays() -> None:
    assert chain(3).delays_between(np.zeros(0, dtype=np.int64)).shape == (0, 0)


def test_a_network_that_nobody_guessed_at_has_no_notes() -> None:
    assert chain(3).notes == ()
