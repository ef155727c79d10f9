"""A first look at a video: what it shows, for how long, and when each frame comes.

Packets are counted and their times read, but only the first frame is decoded. The header
alone would be quicker, but it is an author's claim: what is refused, and how long the result
is, should not rest on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, cast

from distributary.media.converters.clock import tick_rate
from distributary.media.converters.containers import Container
from distributary.media.converters.header_duration import header_seconds
from distributary.media.converters.streams import (
    Decoding,
    audio_stream,
    check_pixels,
    damage_as_failure,
    opened,
    video_stream,
)
from distributary.media.failure import Unconvertible
from distributary.media.limits import Limits

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

__all__ = ["VideoInfo", "read_video_info"]

_USUAL_RATE = Fraction(25)
# A file that lacks more than this share of its promised length was cut off.
_MISSING_SHARE_MAX = Fraction(1, 10)
# Codecs fill up their last packet of sound, and some add one.
_PADDING_SECONDS_MAX = 0.15
# Pixels further from square than this are a mistake in the header.
_PIXEL_ASPECT_MAX = 8


@dataclass(frozen=True)
class VideoInfo:
    """What a video holds.

    Attributes
    ----------
    width, height
        Of the picture as people see it: turned the right way, with square pixels, neither
        side longer than it is stored.
    stored
        Width and height of a frame as it is decoded.
    turn
        Degrees by which frames have to be turned clockwise: 0, 90, 180 or 270.
    start
        Seconds at which the first frame is shown, on the source's own clock.
    rate
        Ticks a second of the clock on which frames fall.
    average_rate
        Frames a second.
    tick_count
        How long its pictures are, in ticks.
    seconds
        How long everything is.
    ends_together
        Whether sound ends with the pictures, or so little later that its codec explains it.
    sample_rate, channel_count
        Of its sound; 0 if there is none.
    """

    width: int
    height: int
    stored: tuple[int, int]
    turn: int
    start: Fraction
    rate: Fraction
    average_rate: float
    tick_count: int
    seconds: Fraction
    ends_together: bool
    sample_rate: int
    channel_count: int


def read_video_info(content: bytes, container: Container, limits: Limits) -> VideoInfo:
    """Look through a video, and refuse one that exceeds the limits or is not whole."""
    with damage_as_failure(), opened(content, container) as source:
        video = video_stream(source, limits)
        audio = audio_stream(source)
        sound = None if audio is None else audio.codec_context
        # However slowly frames follow each other, every second counts.
        header_rate = max(video.average_rate or _USUAL_RATE, Fraction(1))
        promised = header_seconds(content, container, source, video)
        _check_frames(max(Fraction(video.frames), promised * header_rate), limits)

        first, times, end, end_of_all = _look_through(source, video, limits)
        _check_whole(times, source, video, end=end_of_all, promised=promised)
        base = video.time_base
        if first is None or base is None:
            raise Unconvertible("damaged", "none of its frames can be decoded")
        check_pixels(first.width * first.height, limits)
        start = first.pts if first.pts is not None else min(times, default=0)
        seconds = [float((time - start) * base) for time in times if time >= start] or [0.0]
        rate = tick_rate(
            seconds,
            proposed=(video.average_rate, video.guessed_rate, video.base_rate),
        )
        tick_count = max(round(seconds[-1] * rate) + 1, round((end - start * base) * rate))
        length = max(end_of_all - start * base, tick_count / rate)
        _check_frames(max(Fraction(tick_count), length * header_rate), limits)
        width, height = _square(first, video.sample_aspect_ratio)
        turn = -round(first.rotation / 90) * 90 % 360
        return VideoInfo(
            *((height, width) if turn in (90, 270) else (width, height)),
            stored=(first.width, first.height),
            turn=turn,
            start=start * base,
            rate=rate,
            average_rate=float(len(seconds) * rate / tick_count),
            tick_count=tick_count,
            seconds=length,
            ends_together=end_of_all - end < _PADDING_SECONDS_MAX,
            sample_rate=sound.sample_rate if sound is not None and sound.channels else 0,
            channel_count=0 if sound is None else sound.channels,
        )


def _look_through(
    source: InputContainer, video: VideoStream, limits: Limits
) -> tuple[VideoFrame | None, list[int], Fraction, Fraction]:
    """Return the first frame, the times of all, and when the video and when all streams end."""
    decoding = Decoding()
    first: VideoFrame | None = None
    times: list[int] = []
    ends = dict.fromkeys(range(len(source.streams)), 0)
    for packet in source.demux():
        stream = packet.stream.index
        time = packet.dts if packet.pts is None else packet.pts
        if time is not None and not packet.is_discard:
            ends[stream] = max(ends[stream], time + (packet.duration or 0))
            if stream == video.index:
                times.append(time)
                _check_frames(len(times), limits)
        if first is None and stream == video.index:
            frames = decoding.video(cast("Packet[VideoStream]", packet))
            first = frames[0] if frames else None
    times.sort()
    seconds = [end * (source.streams[index].time_base or 0) for index, end in ends.items()]
    return first, times, Fraction(seconds[video.index]), Fraction(max(seconds))


def _check_whole(
    times: list[int],
    source: InputContainer,
    video: VideoStream,
    *,
    end: Fraction,
    promised: Fraction,
) -> None:
    """Refuse a file that was cut off.

    Some containers do not say how long the last frame is shown, so as much as the longest
    of the others, twice, may be missing.
    """
    import av

    unit = video.time_base or Fraction(0)
    usual = 1 / (video.average_rate or _USUAL_RATE)
    longest = max((after - now for now, after in pairwise(times)), default=0) * unit or usual
    # Some count what comes before a late start, and some do not.
    reached = end - min(Fraction(source.start_time or 0, av.time_base), Fraction(0))
    if promised - reached > max(_MISSING_SHARE_MAX * promised, 2 * longest):
        raise Unconvertible(
            "damaged",
            f"it ends after {float(reached):.1f} of the {float(promised):.1f} seconds that its "
            "header promises",
        )


def _check_frames(frame_count: Fraction | float, limits: Limits) -> None:
    # Lengths are rounded; a part of a frame is none.
    if int(frame_count) > limits.frames:
        raise Unconvertible(
            "frames", f"it has or claims {int(frame_count):,} frames, more than {limits.frames:,}"
        )


def _square(frame: VideoFrame, aspect: Fraction | None) -> tuple[int, int]:
    """Return the size of a frame with square pixels, made so by shrinking alone."""
    if aspect is None or not 1 / _PIXEL_ASPECT_MAX <= aspect <= _PIXEL_ASPECT_MAX:
        return frame.width, frame.height
    if aspect > 1:
        return frame.width, max(1, round(frame.height / aspect))
    return max(1, round(frame.width * aspect)), frame.height
