"""Algorithms 4 and 5 of Zhou, Ooi and Tan as they are printed, to see how they deadlock.

Messages arrive, nothing is lost and nobody crashes. A move is that a child goes below another
one: the parent strikes it out and tells its new parent. Repairs can be made one by one, in the
order of `REPAIRS`; behind each mended deadlock stands the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from tests.explorer.search import Fault, explore
from tests.explorer.system import Outcome, OwnStep

__all__ = ["DEADLOCKS", "REPAIRS", "LiteralBrokers", "deadlock"]

IDLE, WAIT, HOLD = "IDLE", "WAIT", "HOLD"

TOKENS = "the token is also sent on when the last acknowledgement comes directly"
EMPTY_WAITS = "a wait without children is complete at once"
RELEASES = "every child that was held gets a release, moved or not"
REPAIRS = (TOKENS, EMPTY_WAITS, RELEASES)

Children: TypeAlias = tuple[tuple[int, ...], ...]
"""By tree."""
Message: TypeAlias = tuple[Any, ...]
"""(to, what, from, tree)."""

DEADLOCKS: tuple[tuple[str, int, tuple[tuple[int | None, ...], ...]], ...] = (
    ("A child is never released", 0, ((None, 0),)),
    ("A leaf waits for children that it does not have", 1, ((None, 0),)),
    ("A child that was moved is never released", 2, ((None, 0, 0),)),
    ("Two parents hold one child each", 3, ((None, -1, 0, 0), (-1, None, 1, 1))),
)
"""What goes wrong, after how many repairs, and in which trees: parents, -1 outside."""


class Waiting(NamedTuple):
    """A wait object: its tree, how many acknowledgements are missing, and who was asked."""

    tree: int
    missing: int
    asked: tuple[int, ...]


class LiteralBroker(NamedTuple):
    """The variables of one broker; names are those of the paper."""

    num: int
    child: Children
    rounds: tuple[int, ...]
    state: str = IDLE
    hold_tree: int | None = None
    wait_pool: tuple[Waiting, ...] = ()
    q_ready: tuple[Waiting, ...] = ()
    q_token: tuple[Message, ...] = ()
    q_hold: tuple[Message, ...] = ()


_Way: TypeAlias = tuple[LiteralBroker, tuple[Message, ...]]


class LiteralBrokers:
    """Brokers that do what the paper says.

    Parameters
    ----------
    trees
        By tree, the parent of each broker: None at the root, -1 outside.
    repairs
        How many of `REPAIRS` are made.
    """

    allowed: Mapping[str, int] = {}
    expiring: frozenset[str] = frozenset()

    def __init__(self, trees: Sequence[Sequence[int | None]], *, repairs: int = 0) -> None:
        self.trees = trees
        self.repairs = REPAIRS[:repairs]

    def nodes(self) -> Sequence[LiteralBroker]:
        """Return the brokers at the beginning."""
        return [
            LiteralBroker(
                name,
                tuple(
                    tuple(i for i, parent in enumerate(parents) if parent == name)
                    for parents in self.trees
                ),
                tuple(int(parents[name] is None) for parents in self.trees),
            )
            for name in range(len(self.trees[0]))
        ]

    def own_steps(self, node: LiteralBroker) -> tuple[OwnStep, ...]:
        """Return the rounds that a root may begin."""
        steps = []
        for tree, left in enumerate(node.rounds):
            if left:
                rounds = (*node.rounds[:tree], left - 1, *node.rounds[tree + 1 :])
                token = (node.num, "token", node.num, tree)
                outcomes = self.deliver(node._replace(rounds=rounds), token)
                steps.append(OwnStep("round", f"begins a round of tree {tree}", outcomes))
        return tuple(steps)

    def deliver(self, node: LiteralBroker, message: Message) -> tuple[Outcome, ...]:
        """Return what may come of a message: Algorithm 4, lines 3 to 17."""
        ways = self._handle((node, ()), message)
        if message[1] == "adopt":
            return tuple(ways)
        done: list[_Way] = []
        for way in ways:
            done += self._take_up_ready(way)
        return tuple(dict.fromkeys(after for way in done for after in self._take_up_queues(way)))

    def resting(self, node: LiteralBroker) -> bool:
        """Whether a broker is idle."""
        return node.state == IDLE

    def structure(self, node: LiteralBroker) -> None:
        """Return nothing: only deadlocks are looked for."""

    def fault(self, structures: Sequence[Any]) -> str | None:
        """Return nothing: only deadlocks are looked for."""
        return None

    def text(self, message: Message) -> str:
        """Return a message in words."""
        _, what, sender, tree, *rest = message
        if what == "adopt":
            return f"{rest[0]} for a child in tree {tree} from {sender}"
        return f"{what} of tree {tree} from {sender}"

    def node_text(self, node: LiteralBroker) -> str:
        """Return the state of a broker."""
        return node.state

    def _handle(self, way: _Way, message: Message) -> list[_Way]:
        """Function HandleMsg of Algorithm 5."""
        node, sent = way
        _, what, source, tree, *rest = message
        if what == "hold":
            if node.state == HOLD or (node.state == WAIT and source < node.num):
                return [(node._replace(q_hold=(*node.q_hold, message)), sent)]
            held = node._replace(state=HOLD, hold_tree=tree)
            return [(held, (*sent, (source, "acknowledgement", node.num, tree)))]
        if what == "token":
            return self._token(node, sent, message)
        if what == "acknowledgement":
            return self._acknowledged(node, sent, tree)
        if what == "release":
            if node.state == HOLD and node.hold_tree == tree:
                node = node._replace(state=WAIT if node.wait_pool else IDLE, hold_tree=None)
            return [(node, sent)]
        assert what == "adopt"
        children = tuple(sorted([*node.child[tree], rest[0]]))
        return [(_with_children(node, tree, children), sent)]

    def _token(
        self, node: LiteralBroker, sent: tuple[Message, ...], message: Message
    ) -> list[_Way]:
        tree = message[3]
        if node.state == HOLD:
            if tree != node.hold_tree:
                return [(node._replace(q_token=(*node.q_token, message)), sent)]
            node = node._replace(state=WAIT, hold_tree=None)
        if any(wait.tree == tree for wait in node.wait_pool):
            return [(node, sent)]
        children = node.child[tree]
        wait = Waiting(tree, len(children), children)
        node = node._replace(state=WAIT, wait_pool=(*node.wait_pool, wait))
        holds = tuple((child, "hold", node.num, tree) for child in children)
        if not children and EMPTY_WAITS in self.repairs:
            return self._complete(node, (*sent, *holds), wait)
        return [(node, (*sent, *holds))]

    def _acknowledged(
        self, node: LiteralBroker, sent: tuple[Message, ...], tree: int
    ) -> list[_Way]:
        (wait,) = [wait for wait in node.wait_pool if wait.tree == tree]
        fewer = wait._replace(missing=wait.missing - 1)
        pool = tuple(fewer if other is wait else other for other in node.wait_pool)
        node = node._replace(wait_pool=pool)
        return self._complete(node, sent, fewer) if fewer.missing == 0 else [(node, sent)]

    def _complete(
        self, node: LiteralBroker, sent: tuple[Message, ...], wait: Waiting
    ) -> list[_Way]:
        pool = tuple(other for other in node.wait_pool if other is not wait)
        node = node._replace(wait_pool=pool)
        if node.state == HOLD:
            return [(node._replace(q_ready=(*node.q_ready, wait)), sent)]
        return self._adapt(node, sent, wait, tokens=TOKENS in self.repairs)

    def _adapt(
        self, node: LiteralBroker, sent: tuple[Message, ...], wait: Waiting, *, tokens: bool
    ) -> list[_Way]:
        """Function PerformAdapt, with any child going below any other, or none."""
        tree = wait.tree
        children = node.child[tree]
        node = node._replace(state=WAIT if node.wait_pool else IDLE)
        ways: list[_Way] = [(node, sent)]
        for mover in children:
            rest = tuple(child for child in children if child != mover)
            for parent in rest:
                adopt = (parent, "adopt", node.num, tree, mover)
                ways.append((_with_children(node, tree, rest), (*sent, adopt)))
        return [self._let_go(*way, wait, tokens=tokens) for way in ways]

    def _let_go(
        self, node: LiteralBroker, sent: tuple[Message, ...], wait: Waiting, *, tokens: bool
    ) -> _Way:
        more: list[Message] = []
        if RELEASES in self.repairs:
            more += [(child, "release", node.num, wait.tree) for child in wait.asked]
        if tokens:
            more += [(child, "token", node.num, wait.tree) for child in node.child[wait.tree]]
        return node, (*sent, *more)

    def _take_up_ready(self, way: _Way) -> list[_Way]:
        """Algorithm 4, lines 6 to 10."""
        ways = [way]
        done: list[_Way] = []
        while ways:
            node, sent = ways.pop()
            if node.state == HOLD or not node.q_ready:
                done.append((node, sent))
            else:
                wait, *rest = node.q_ready
                taken = node._replace(q_ready=tuple(rest))
                ways += self._adapt(taken, sent, wait, tokens=True)
        return done

    def _take_up_queues(self, way: _Way) -> list[_Way]:
        """Algorithm 4, lines 11 to 17."""
        node, sent = way
        if node.state == HOLD:
            return [way]
        queued = (*node.q_token, *node.q_hold)
        ways: list[_Way] = [(node._replace(q_token=(), q_hold=()), sent)]
        for message in queued:
            following: list[_Way] = []
            for after, out in ways:
                if after.state == HOLD and message[1] == "hold":
                    kept = after._replace(q_hold=(*after.q_hold, message))
                    following.append((kept, out))
                else:
                    following += self._handle((after, out), message)
            ways = following
        return ways


def deadlock(trees: Sequence[Sequence[int | None]], *, repairs: int) -> Fault | None:
    """Return a shortest way into a deadlock, None when there is none."""
    return explore(LiteralBrokers(trees, repairs=repairs), states_max=1_000_000).fault


def _with_children(node: LiteralBroker, tree: int, children: tuple[int, ...]) -> LiteralBroker:
    return node._replace(child=(*node.child[:tree], children, *node.child[tree + 1 :]))
