"""Brokers that adapt their trees, as a system to explore.

The machines are those of `broker.adaptation`; here are only the links that they move, and a
choice that the broker makes by its cost model: every legal move may be the best one.

A new parent enters the child and accepts; the child then goes over to it, and detaches from
the old one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from tests.explorer.brokers import OUTSIDE, Broker, Place, Trees, restarted
from tests.explorer.moves import legal_moves
from tests.explorer.system import Outcome, OwnStep

from distributary.broker.adaptation import mover, node
from distributary.broker.adaptation.mover import with_children

__all__ = ["AdaptingBrokers"]

Message: TypeAlias = tuple[Any, ...]
"""(to, what, from, tree, and what belongs to it)."""


class AdaptingBrokers:
    """Brokers that adapt their trees.

    Parameters
    ----------
    trees
        The trees at the beginning.
    rounds
        How many rounds the root of each tree begins.
    allowed
        How many messages may get `lost`, how often somebody may `crash` and restart, lose
        patience (`expire`), or go to the root by itself (`return`).
    patient
        Whether nobody loses patience at all.
    """

    def __init__(
        self,
        trees: Trees,
        *,
        rounds: int = 1,
        allowed: Mapping[str, int] | None = None,
        patient: bool = False,
    ) -> None:
        self.trees = trees
        self.rounds = rounds
        self.patient = patient
        none = {"crash": 0, "expire": 0, "lost": 0, "return": 0}
        self.allowed: Mapping[str, int] = {**none, **(allowed or {})}
        self.expiring = frozenset({"expire"})
        self.roots = [parents.index(None) for parents in trees]

    def nodes(self) -> Sequence[Broker]:
        """Return the brokers at the beginning."""
        found = []
        for name in range(len(self.trees[0])):
            places = tuple(
                Place(
                    parents[name],
                    0,
                    tuple((child, 0) for child, up in enumerate(parents) if up == name),
                )
                for parents in self.trees
            )
            rounds = tuple(self.rounds if root == name else 0 for root in self.roots)
            found.append(Broker(node.AdaptationNode(name), places, 0, rounds))
        return found

    def deliver(self, broker: Broker, message: Message) -> tuple[Outcome, ...]:
        """Return what may come of a message."""
        _, what, sender, tree, *rest = message
        match what:
            case "token":
                return self._step(broker, node.TokenCame(rest[0]))
            case "hold":
                return self._step(broker, node.Hold(rest[0], sender))
            case "acknowledgement":
                granted, report = rest[1:]
                return self._step(broker, node.Acknowledged(rest[0], sender, granted, report))
            case "release":
                return self._step(broker, node.Released(rest[0], sender))
            case "moved":
                return self._step(broker, node.StepMade(rest[0], sender, rest[1]))
            case "order":
                return self._ordered(broker, sender, tree, *rest)
            case "question":
                return self._asked(broker, tree, *rest)
            case "answer":
                return self._move(broker, tree, mover.Answered(*rest))
            case "attach":
                return self._attach(broker, sender, tree, rest[0])
            case "attached":
                return self._attached(broker, sender, tree, rest[0])
        assert what == "detach"
        kept = tuple(
            (child, link)
            for child, link in broker.places[tree].children
            if child != sender or link > rest[0]
        )
        return ((broker.at(tree, children=kept), ()),)

    def own_steps(self, broker: Broker) -> tuple[OwnStep, ...]:
        """Return what may happen to a broker by itself."""
        steps = []
        for tree, left in enumerate(broker.rounds):
            if left:
                round_ = (tree, self.rounds - left + 1)
                rounds = (*broker.rounds[:tree], left - 1, *broker.rounds[tree + 1 :])
                outcomes = self._step(broker._replace(rounds=rounds), node.TokenCame(round_))
                steps.append(OwnStep("round", f"begins a round of tree {tree}", outcomes))
        if not self.patient:
            steps += self._expiries(broker)
        steps.append(OwnStep("crash", "crashes and restarts", ((restarted(broker), ()),)))
        for tree, place in enumerate(broker.places):
            if place.parent not in (None, OUTSIDE, self.roots[tree]) and place.asked is None:
                outcome = self._ask(broker, tree, self.roots[tree])
                steps.append(OwnStep("return", f"goes to the root of tree {tree}", (outcome,)))
        return tuple(steps)

    def resting(self, broker: Broker) -> bool:
        """Whether a broker is idle and on no move."""
        return broker.node.phase is node.Phase.IDLE and all(
            place.asked is None and place.move.stage is mover.Stage.STILL for place in broker.places
        )

    def structure(self, broker: Broker) -> tuple[Any, ...]:
        """Return the links of a broker."""
        return tuple((place.parent, place.link, place.children) for place in broker.places)

    def fault(self, structures: Sequence[Any]) -> str | None:
        """Return whether some broker is cut off or on a cycle."""
        for tree in range(len(self.trees)):
            for name, links in enumerate(structures):
                up, link, _ = links[tree]
                if up is None or up == OUTSIDE:
                    continue
                if (name, link) not in structures[up][tree][2]:
                    return f"{name} is an orphan in tree {tree}: {up} does not know it"
                for _ in structures:
                    up = structures[up][tree][0] if up is not None else None
                if up is not None:
                    return f"{name} is on or below a cycle in tree {tree}"
        return None

    def text(self, message: Message) -> str:
        """Return a message in words."""
        _, what, sender, tree, *rest = message
        words = f"{what} of tree {tree} from {sender}"
        if what == "acknowledgement" and not rest[1]:
            return f"refusal of tree {tree} from {sender}"
        if what == "order":
            return f"{words} to go below {rest[1]}"
        if what == "question":
            return f"question in tree {tree} whether {rest[0]} may go below it"
        if what == "answer":
            return f"{words}: {'go' if rest[1] else 'stay'}"
        if what == "moved":
            return f"{words}: {'done' if rest[1] else 'not done'}"
        return words

    def node_text(self, broker: Broker) -> str:
        """Return what a broker is doing."""
        return broker.node.phase.name

    def _step(self, broker: Broker, given: node.Input) -> tuple[Outcome, ...]:
        """Let the machine go on; there are several outcomes where it has a choice."""
        after, outputs = node.step(broker.node, given, broker)
        broker = broker._replace(node=after)
        name = after.name
        sent: list[Message] = []
        attempt: node.Attempt | None = None
        for output in outputs:
            match output:
                case node.Attempt():
                    attempt = output
                case node.SendHold(to, round_):
                    sent.append((to, "hold", name, round_[0], round_))
                case node.SendAcknowledgement(to, round_, granted):
                    report = broker.children(round_[0]) if granted else ()
                    what = (to, "acknowledgement", name, round_[0], round_, granted, report)
                    sent.append(what)
                case node.SendRelease(to, round_):
                    sent.append((to, "release", name, round_[0], round_))
                case node.SendOrder(to, round_, parent):
                    sent.append((to, "order", name, round_[0], round_, parent))
                case node.PassToken(wait):
                    tree = wait.round[0]
                    steps = wait.steps[: wait.done]
                    below = with_children(broker.children(tree), dict(wait.reports), steps)
                    sent.extend((child, "token", name, tree, wait.round) for child in below)
        if attempt is None:
            return ((broker, tuple(sent)),)
        wait = attempt.wait
        moves = {steps: None for _, steps in legal_moves(name, dict(wait.reports))}
        outcomes: dict[Outcome, None] = {}
        for steps in [(), *moves]:
            for following, more in self._step(broker, node.Chosen(wait.round, steps)):
                outcomes[(following, (*sent, *more))] = None
        return tuple(outcomes)

    def _move(self, broker: Broker, tree: int, given: mover.Given) -> tuple[Outcome, ...]:
        move, doing = mover.step(broker.places[tree].move, given)
        broker = broker.at(tree, move=move)
        name = broker.node.name
        match doing:
            case mover.Climb(to, number):
                return ((broker, ((to, "question", name, tree, name, number),)),)
            case mover.Attach(to, number):
                return (self._ask(broker, tree, to, number),)
            case mover.Tell(to, round_, done):
                return ((broker, ((to, "moved", name, tree, round_, done),)),)
        return ((broker, ()),)

    def _ordered(
        self, broker: Broker, orderer: int, tree: int, round_: node.Round, parent: int
    ) -> tuple[Outcome, ...]:
        place = broker.places[tree]
        if place.parent == parent:
            done = (orderer, "moved", broker.node.name, tree, round_, True)
            return ((broker, (done,)),)
        given = mover.Ordered(
            round_,
            orderer,
            parent,
            obeys=broker.node.obeys(tree) and place.asked is None,
            to_root=parent == self.roots[tree],
            number=broker.link_count + 1,
        )
        return self._move(broker._replace(link_count=broker.link_count + 1), tree, given)

    def _asked(self, broker: Broker, tree: int, who: int, number: int) -> tuple[Outcome, ...]:
        place = broker.places[tree]
        name = broker.node.name
        verdict = mover.judge(name, place.parent, place.move, who)
        if verdict is mover.Verdict.ON:
            return ((broker, ((place.parent, "question", name, tree, who, number),)),)
        cleared = verdict is mover.Verdict.CLEARED
        return ((broker, ((who, "answer", name, tree, number, cleared),)),)

    def _ask(self, broker: Broker, tree: int, parent: int, number: int | None = None) -> Outcome:
        """Ask another broker to be the parent."""
        if number is None:
            number = broker.link_count + 1
            broker = broker._replace(link_count=number)
        asking = (parent, "attach", broker.node.name, tree, number)
        return broker.at(tree, asked=(parent, number)), (asking,)

    def _attach(self, broker: Broker, child: int, tree: int, number: int) -> tuple[Outcome, ...]:
        links = dict(broker.places[tree].children)
        links[child] = max(number, links.get(child, number))
        answer = (child, "attached", broker.node.name, tree, number)
        return ((broker.at(tree, children=tuple(sorted(links.items()))), (answer,)),)

    def _attached(self, broker: Broker, parent: int, tree: int, number: int) -> tuple[Outcome, ...]:
        place = broker.places[tree]
        name = broker.node.name
        if place.asked != (parent, number):
            late = () if place.link == number else ((parent, "detach", name, tree, number),)
            return ((broker, late),)
        arrived = broker.at(tree, parent=parent, link=number, asked=None)
        sent: tuple[Message, ...] = ()
        if place.parent != parent:
            sent = ((place.parent, "detach", name, tree, place.link),)
        return tuple(
            (following, (*sent, *more))
            for following, more in self._move(arrived, tree, mover.Arrived(number, accepted=True))
        )

    def _expiries(self, broker: Broker) -> list[OwnStep]:
        steps = []
        if broker.node.held is not None:
            outcomes = self._step(broker, node.HoldExpired())
            steps.append(OwnStep("expire", "is held for too long, and goes on", outcomes))
        if broker.node.wait is not None:
            outcomes = self._step(broker, node.WaitExpired())
            steps.append(OwnStep("expire", "waits for too long, and gives up", outcomes))
        for tree, place in enumerate(broker.places):
            if place.asked is not None or place.move.stage is not mover.Stage.STILL:
                outcomes = self._move(broker.at(tree, asked=None), tree, mover.Expired())
                text = f"stays where it is in tree {tree}, after too long"
                steps.append(OwnStep("expire", text, outcomes))
        return steps
