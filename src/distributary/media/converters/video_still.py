"""A still of a video."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final

from distributary.content.media_type import MediaType
from distributary.media.converter import Converter
from distributary.media.converters.containers import VIDEO_CONTAINERS, Container
from distributary.media.converters.picture import (
    PICTURE_PARAMETERS,
    codec_versions,
    is_no_wider,
    is_picture,
    number,
    proportional,
    saved,
    upright,
)
from distributary.media.converters.streams import (
    Decoding,
    damage_as_failure,
    opened,
    video_stream,
)
from distributary.media.converters.video_info import VideoInfo, read_video_info
from distributary.media.failure import Unconvertible
from distributary.media.formats import IMAGE_FORMATS, VIDEO_FORMATS
from distributary.media.limits import Limits

if TYPE_CHECKING:
    from av.video.frame import VideoFrame

__all__ = ["VideoStill"]

_REVISION: Final = 1
_SECONDS = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,3})?")
# Many videos begin in black or with a title.
_USUAL_SHARE = Fraction(1, 10)
# What cameras that take pictures call the same turns.
_ORIENTATIONS: Final = {0: 1, 90: 6, 180: 3, 270: 8}


class VideoStill(Converter):
    """Draws one frame of a video, upright and with square pixels, and never wider than it is.

    The frame is the one that is shown at second `at`; a tenth of the way through unless given.
    """

    name: ClassVar[str] = "video-still"
    packages: ClassVar[tuple[tuple[str, str], ...]] = (("av", "video"), ("PIL", "media"))
    parameters: ClassVar[Mapping[str, str]] = {
        **PICTURE_PARAMETERS,
        "at": "seconds from the beginning, such as 2.5",
    }

    @property
    def version(self) -> str:
        """Our own revision, the libraries', and the codecs of pictures."""
        import av

        return f"{_REVISION};av={av.__version__} {codec_versions()}"

    def conversions(self) -> Iterator[tuple[MediaType, MediaType]]:
        """List JPEG in the widths that pictures have and that enlarge nothing."""
        return (
            (video, picture)
            for video in VIDEO_FORMATS
            for picture in IMAGE_FORMATS
            if picture.subtype == "jpeg" and self.converts(video, picture)
        )

    def converts(self, source: MediaType, target: MediaType) -> bool:
        """Whether this is a picture of a video, at a time that we understand."""
        if source.essence not in VIDEO_CONTAINERS:
            return False
        if not _SECONDS.fullmatch(target.parameters.get("at", "0")):
            return False
        others = {name: said for name, said in target.parameters.items() if name != "at"}
        picture = MediaType(target.type, target.subtype, others)
        return is_picture(picture, parameters=("width",)) and is_no_wider(source, target)

    def convert(
        self, content: bytes, source: MediaType, target: MediaType, limits: Limits
    ) -> bytes:
        """Return the picture at the width asked for, or at its own."""
        import PIL.Image
        from PIL.Image import Resampling

        container = VIDEO_CONTAINERS[source.essence]
        info = read_video_info(content, container, limits)
        asked = number(target, "width") or info.width
        if asked > info.width:
            raise Unconvertible(
                "enlarges", f"the video is {info.width:,} pixels wide, less than {asked:,}"
            )
        length = info.tick_count / info.rate
        at = Fraction(target.parameters.get("at", length * _USUAL_SHARE))
        if at >= length:
            raise Unconvertible("impossible", f"the video ends after {float(length):.1f} seconds")
        frame = _frame_at(content, container, info, at, limits)
        picture = PIL.Image.fromarray(_coloured(frame).to_ndarray())
        size = (asked, proportional(info.width, info.height, asked=asked))
        if info.turn in (90, 270):
            size = size[::-1]
        if picture.size != size:
            picture = picture.resize(size, Resampling.LANCZOS, reducing_gap=3.0)
        return saved(upright(picture, _ORIENTATIONS[info.turn]), target)


def _frame_at(
    content: bytes, container: Container, info: VideoInfo, at: Fraction, limits: Limits
) -> VideoFrame:
    """Return the frame that is shown at a second of the video."""
    found: VideoFrame | None = None
    decoding = Decoding()
    with damage_as_failure(), opened(content, container) as source:
        video = video_stream(source, limits)
        for packet in source.demux(video):
            for frame in decoding.video(packet):
                if (frame.width, frame.height) != info.stored:
                    raise Unconvertible("damaged", "its frames change their size midway")
                time = Fraction(frame.pts or 0) * (frame.time_base or 0) - info.start
                if found is not None and time > at:
                    return found
                found = frame
    decoding.check()
    if found is None:
        raise Unconvertible("damaged", "none of its frames can be decoded")
    return found


def _coloured(frame: VideoFrame) -> VideoFrame:
    from av.video.reformatter import Interpolation

    # The same pixels on every processor.
    return frame.reformat(
        format="rgb24",
        interpolation=Interpolation.BILINEAR | Interpolation.ACCURATE_RND | Interpolation.BITEXACT,
        threads=1,
    )
