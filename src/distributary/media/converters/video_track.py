"""The pictures of a video on their way: turned, scaled, timed and encoded."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final, cast

from distributary.media.converters.containers import Container, available
from distributary.media.converters.video_info import VideoInfo
from distributary.media.failure import Unconvertible

if TYPE_CHECKING:
    from av.container import OutputContainer
    from av.filter import Graph
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

__all__ = ["VideoTrack"]

_SECONDS_BETWEEN_KEYS = 2

# x264 looks at memory that nobody wrote when it shares bits out by macroblock tree, so that
# its output differs between runs. Without the tree, and in one thread, it does not. Frames
# that refer to later ones are left out everywhere: a packet is then a frame, in order.
_OPTIONS: Final[dict[str, dict[str, str]]] = {
    "libx264": {"preset": "veryfast", "mbtree": "0", "bf": "0"},
}
_TURNS: Final = {
    90: (("transpose", "clock"),),
    180: (("hflip", None), ("vflip", None)),
    270: (("transpose", "cclock"),),
}


class VideoTrack:
    """Takes decoded frames and writes them into a container."""

    def __init__(
        self,
        target: OutputContainer,
        container: Container,
        info: VideoInfo,
        *,
        width: int,
        height: int,
        bits: int,
    ) -> None:
        import av
        from av.codec.context import Flags

        self._target = target
        self._info = info
        self._refills = not container.has_timestamps
        self._width, self._height = width, height
        encoder = available(container.video_encoders)
        self._stream = cast(
            "VideoStream",
            target.add_stream(
                encoder,
                rate=info.rate,
                options=dict(_OPTIONS.get(encoder, {})),
                width=width,
                height=height,
                bit_rate=bits,
                time_base=1 / info.rate,
            ),
        )
        context = self._stream.codec_context
        context.pix_fmt = "yuv420p"
        context.thread_count = 1
        context.gop_size = max(1, round(_SECONDS_BETWEEN_KEYS * info.average_rate))
        context.max_b_frames = 0
        context.flags |= Flags.bitexact | Flags.frame_duration
        self._scaler = av.video.reformatter.VideoReformatter()
        self._turner: Graph | None = None
        # The frame before, waiting to learn how long it is shown.
        self._waiting: tuple[int, VideoFrame] | None = None

    def take(self, frame: VideoFrame) -> None:
        """Take the next frame to be shown."""
        if (frame.width, frame.height) != self._info.stored:
            raise Unconvertible("damaged", "its frames change their size midway")
        tick = 0 if self._waiting is None else self._waiting[0] + 1
        if frame.pts is not None and frame.time_base is not None:
            # Two frames may fall on one tick of the finest clock; the later one waits then.
            shown = (frame.pts * frame.time_base - self._info.start) * self._info.rate
            tick = max(tick, round(shown))
        if tick >= self._info.tick_count + 1:
            raise Unconvertible("damaged", "a frame comes after the end")
        if self._waiting is not None:
            self._encode(*self._waiting, until=tick)
        self._waiting = (tick, self._scaled(frame))

    def finish(self) -> None:
        """Write what is still on its way."""
        if self._waiting is None:
            raise Unconvertible("damaged", "none of its frames can be decoded")
        tick, frame = self._waiting
        end = max(tick + 1, self._info.tick_count)
        if self._refills and end - tick > 1:
            self._encode(tick, frame, until=end - 1)
            tick = end - 1
        self._encode(tick, frame, until=end)
        self._target.mux(self._stream.encode(None))

    def _scaled(self, frame: VideoFrame) -> VideoFrame:
        from av.video.reformatter import ColorRange, Interpolation

        if self._info.turn:
            frame = self._turned(frame)
        return self._scaler.reformat(
            frame,
            width=self._width,
            height=self._height,
            format="yuv420p",
            # The same pixels on every processor, at a tenth more time.
            interpolation=Interpolation.BILINEAR
            | Interpolation.ACCURATE_RND
            | Interpolation.BITEXACT,
            dst_color_range=ColorRange.MPEG,
            threads=1,
        )

    def _turned(self, frame: VideoFrame) -> VideoFrame:
        import av

        if self._turner is None:
            graph = av.filter.Graph()
            graph.threads = 1
            nodes = [
                graph.add_buffer(
                    width=frame.width,
                    height=frame.height,
                    format=frame.format,
                    time_base=Fraction(1, 1000),
                )
            ]
            nodes += [graph.add(name, args) for name, args in _TURNS[self._info.turn]]
            graph.link_nodes(*nodes, graph.add("buffersink")).configure()
            self._turner = graph
        self._turner.vpush(frame)
        return self._turner.vpull()

    def _encode(self, tick: int, frame: VideoFrame, *, until: int) -> None:
        frame.pts = tick
        frame.time_base = 1 / self._info.rate
        frame.duration = until - tick
        # The source's choice of key frames is none of the encoder's business.
        frame.pict_type = 0
        self._target.mux(self._stream.encode(frame))
