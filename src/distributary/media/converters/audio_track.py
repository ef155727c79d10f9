"""Sound on its way: resampled, put in its place and encoded."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, cast

from distributary.media.converters.containers import Container
from distributary.media.failure import Unconvertible

if TYPE_CHECKING:
    from av.audio.frame import AudioFrame
    from av.audio.stream import AudioStream
    from av.container import OutputContainer
    from av.filter import Graph
    from av.packet import Packet

__all__ = ["AudioTrack", "check_rate", "check_samples"]

# What sound there is has one of these rates; resampling from others is a way to make much of
# little.
_RATES = range(4_000, 384_001)
_LAYOUTS = ("mono", "stereo", "2.1", "quad", "5.0", "5.1", "6.1", "7.1")


class AudioTrack:
    """Takes decoded sound and writes it into a container.

    The result begins at second `start` of the source's clock: sound before it is cut, and silence
    put where there is none. Without one, sound is taken as it comes. It is cut after
    `seconds_max`. There may be `samples_max` samples per channel, at the source's rate.
    """

    def __init__(
        self,
        target: OutputContainer,
        container: Container,
        *,
        rate: int,
        channel_count: int,
        bits: int | None,
        start: Fraction | None,
        seconds_max: Fraction | None,
        samples_max: int,
    ) -> None:
        from av.codec.context import Flags

        self._target = target
        self._rate = rate
        self._layout = _LAYOUTS[channel_count - 1]
        self._start = start
        self._seconds_max = seconds_max
        self._samples_max = samples_max
        self._drops_delay = not container.records_delay
        self._stream = cast(
            "AudioStream",
            target.add_stream(
                container.audio_encoder,
                rate=rate,
                options=dict(container.audio_options),
                layout=self._layout,
                bit_rate=bits or 0,
                time_base=Fraction(1, rate),
            ),
        )
        context = self._stream.codec_context
        context.thread_count = 1
        context.flags |= Flags.bitexact
        self._graph: Graph | None = None
        self._shape: tuple[int, str, str] | None = None
        self._dropped_count: int | None = None
        self._packet_count = 0
        self.samples_read = 0
        self.samples_written = 0

    def take(self, frame: AudioFrame) -> None:
        """Take the next stretch of sound."""
        shape = (frame.sample_rate, frame.format.name, frame.layout.name)
        check_rate(frame.sample_rate)
        if self._graph is None:
            self._shape, self._graph = shape, self._resampling(frame)
        elif shape != self._shape:
            raise Unconvertible("damaged", "its sound changes its rate or channels midway")
        place = self.samples_read
        if self._start is not None and frame.pts is not None and frame.time_base is not None:
            place = round((frame.pts * frame.time_base - self._start) * frame.sample_rate)
        self.samples_read += frame.samples
        check_samples(max(place, self.samples_read), self._samples_max)
        if place < -self._samples_max:
            raise Unconvertible("damaged", "its sound begins long before its pictures")
        frame.pts = place
        frame.time_base = Fraction(1, frame.sample_rate)
        self._push(frame)

    def finish(self) -> None:
        """Write what is still on its way."""
        if self._graph is not None:
            self._push(None)
            self._write(self._stream.encode(None))

    def _resampling(self, frame: AudioFrame) -> Graph:
        import av

        graph = av.filter.Graph()
        graph.threads = 1
        # Two channels become one by their mean. The sum, which is usual, would overflow.
        resampling = "rematrix_maxval=1"
        if self._start is not None:
            resampling += ":async=1:first_pts=0"
        cut = [] if self._seconds_max is None else [f"end={float(self._seconds_max):.6f}"]
        steps = [
            graph.add_abuffer(
                sample_rate=frame.sample_rate,
                format=frame.format.name,
                layout=frame.layout.name,
                time_base=Fraction(1, frame.sample_rate),
            ),
            graph.add("aresample", resampling),
            *(graph.add("atrim", end) for end in cut),
            graph.add(
                "aformat",
                sample_rates=str(self._rate),
                sample_fmts=self._stream.codec_context.format.name,
                channel_layouts=self._layout,
            ),
            graph.add("abuffersink"),
        ]
        graph.link_nodes(*steps).configure()
        return graph

    def _push(self, frame: AudioFrame | None) -> None:
        import av

        assert self._graph is not None
        # Filters take nothing more once the end has been reached.
        with suppress(av.error.EOFError):
            self._graph.push(frame)
        while True:
            try:
                frame = cast("AudioFrame", self._graph.pull())
            except (av.error.BlockingIOError, av.error.EOFError):
                return
            frame.pts = self.samples_written
            frame.time_base = Fraction(1, self._rate)
            self.samples_written += frame.samples
            self._write(self._stream.encode(frame))

    def _write(self, packets: list[Packet[AudioStream]]) -> None:
        if not self._drops_delay:
            self._target.mux(packets)
            return
        samples = self._stream.codec_context.frame_size
        for packet in packets:
            if self._dropped_count is None:
                # Encoders count time from before the beginning, by as much as they delay.
                self._dropped_count = round(-min(packet.pts or 0, 0) / samples)
            place = (self._packet_count - self._dropped_count) * samples
            self._packet_count += 1
            # The last packet stays if half of it is sound; the rest of it is silence.
            if place == 0 or 0 < place <= self.samples_written - samples // 2:
                packet.pts = packet.dts = place
                packet.time_base = Fraction(1, self._rate)
                self._target.mux(packet)


def check_rate(rate: int) -> None:
    """Refuse sound with a number of samples a second that no sound has."""
    if rate not in _RATES:
        raise Unconvertible("damaged", f"its sound has {rate:,} samples a second")


def check_samples(sample_count: float, samples_max: int) -> None:
    """Refuse more samples per channel than there may be."""
    if sample_count > samples_max:
        raise Unconvertible(
            "frames",
            f"its sound has or claims {int(sample_count):,} samples, more than {samples_max:,}",
        )
