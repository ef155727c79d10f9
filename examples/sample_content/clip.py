"""A video from the air over the flooded town: motion, sound, and marks to check both by.

The picture carries a running time code. At every full second a beep sounds and the frame
around the marker turns white, so that a player that lets sound and picture drift apart
shows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from examples.sample_content.camera import VIEW_M, Camera, centre
from examples.sample_content.country import Country, country
from examples.sample_content.flight import Scene, scene
from examples.sample_content.noise import noise
from examples.sample_content.sound import SAMPLES_PER_SECOND, engine_sound
from examples.sample_content.terrain import Extent
from examples.sample_content.traffic import Traffic
from numpy.typing import NDArray

from distributary.errors import BadInput

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

__all__ = ["SECONDS_MAX", "clip_mp4"]

SECONDS_MAX = 600.0
_VIDEO_BITS = 1_000_000
_AUDIO_BITS = 96_000


def clip_mp4(
    seconds: float = 5, width: int = 640, height: int = 480, fps: int = 25, seed: int = 0
) -> bytes:
    """Return a video with sound: H.264 at 1,000 kbit/s and AAC, in MP4.

    Frames and samples are the same for the same seed; the bytes are as far as the encoder
    is repeatable.

    Parameters
    ----------
    seconds
        How long, more than 0 and at most `SECONDS_MAX`. The file grows by about 130 kB
        with each second.
    width, height
        Size of a frame in pixels: even, from 64 to 1920.
    fps
        Frames a second, from 1 to 60.
    seed
        Which country.
    """
    if not 0 < seconds <= SECONDS_MAX:
        raise BadInput("seconds", f"must be more than 0 and at most {SECONDS_MAX:g}, not {seconds}")
    for name, size in (("width", width), ("height", height)):
        if not 64 <= size <= 1920 or size % 2:
            raise BadInput(name, f"must be an even number from 64 to 1920, not {size}")
    if not 1 <= fps <= 60:
        raise BadInput("fps", f"must be from 1 to 60, not {fps}")
    import av

    count = max(1, round(seconds * fps))
    output = BytesIO()
    with av.open(output, "w", format="mp4") as container:
        video = container.add_stream("libx264", rate=fps, options={"preset": "veryfast"})
        video.width, video.height, video.pix_fmt = width, height, "yuv420p"
        video.bit_rate = _VIDEO_BITS
        audio = container.add_stream("aac", rate=SAMPLES_PER_SECOND, layout="stereo")
        audio.bit_rate = _AUDIO_BITS
        sound = _sound_frames(av, engine_sound(count / fps, seed=seed))
        for number, pixels in enumerate(_frames(country(seed), count, width, height, fps)):
            container.mux(video.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
            # Sound goes along with the picture, or a long file would end with all of it.
            due = (number + 1) / fps * SAMPLES_PER_SECOND
            while (part := next(sound, None)) is not None:
                container.mux(audio.encode(part))
                if part.pts + part.samples >= due:
                    break
        for part in sound:
            container.mux(audio.encode(part))
        container.mux(video.encode(None))
        container.mux(audio.encode(None))
    return output.getvalue()


def _sound_frames(av: Any, samples: NDArray[np.float32]) -> Iterator[Any]:
    for begin in range(0, samples.shape[1], 1024):
        part = np.ascontiguousarray(samples[:, begin : begin + 1024])
        frame = av.AudioFrame.from_ndarray(part, format="fltp", layout="stereo")
        frame.sample_rate = SAMPLES_PER_SECOND
        frame.pts = begin
        frame.time_base = Fraction(1, SAMPLES_PER_SECOND)
        yield frame


def _frames(
    land: Country, count: int, width: int, height: int, fps: int
) -> Iterator[NDArray[np.uint8]]:
    """Yield the frames of the flight, shaped [height, width, 3]."""
    from PIL import Image

    reach = math.hypot(VIEW_M, VIEW_M * height / width) / 2 + 15
    x, y = land.town.placed(np.array([[60.0, 230.0]]))[0].tolist()
    # As much of the land as the camera gets to see in this time, and no more.
    wests, souths = zip(*(centre(number / fps, x, y) for number in range(count)), strict=True)
    extent = Extent(
        min(wests) - reach, min(souths) - reach, max(wests) + reach, max(souths) + reach
    )
    per_metre = min(width / VIEW_M, 2.5)
    columns, rows = round(extent.width * per_metre), round(extent.height * per_metre)
    ground = scene(land, extent, width=columns, height=rows)
    # Water is kept as a fourth channel: one turn of the camera then moves both. Four inks
    # rather than RGBA, as Pillow would blacken whatever is transparent.
    layers = np.dstack([ground.colours, ground.water])
    whole = Image.frombytes("CMYK", (columns, rows), layers.tobytes())
    ripples = Image.fromarray(_ripples(ground, land.seed))
    traffic = Traffic(land, extent)
    burn_in = _BurnIn(land, width, height, fps)
    for number in range(count):
        time = number / fps
        camera = Camera(time, x, y, width, height, extent, per_metre)
        turned = whole.transform(
            (width, height), Image.Transform.AFFINE, camera.to_ground(), Image.Resampling.BILINEAR
        )
        drift = camera.to_ground(2.6 * time, -1.4 * time)
        waves = ripples.transform(
            (width, height), Image.Transform.AFFINE, drift, Image.Resampling.BILINEAR
        )
        pixels = np.asarray(turned)
        glitter = (np.asarray(waves).astype(np.int16) - 128) * (pixels[..., 3] > 127)
        lit = np.clip(pixels[..., :3] + glitter[..., None], 0, 255).astype(np.uint8)
        frame = Image.fromarray(lit)
        traffic.draw(frame, camera, time)
        burn_in.draw(frame, number)
        yield np.asarray(frame)


def _ripples(ground: Scene, seed: int) -> NDArray[np.uint8]:
    rows, columns = ground.water.shape
    xs, ys = ground.extent.columns(columns), ground.extent.rows(rows)
    waves = noise(xs, ys * 1.8, seed=seed + 51, wavelength=7) + noise(
        xs, ys, seed=seed + 52, wavelength=3
    )
    lit: NDArray[np.uint8] = np.clip(128 + 11 * waves, 0, 255).astype(np.uint8)
    return lit


class _BurnIn:
    """What stands in every frame: name and time, and a marker that bounces off the edges."""

    def __init__(self, land: Country, width: int, height: int, fps: int) -> None:
        from PIL import Image, ImageFont
        from PIL.ImageDraw import Draw

        self._fps = fps
        self._font = ImageFont.load_default(size=max(10, height / 26))
        words = f"{land.town.name}, unit 2".upper()
        _, _, right, bottom = self._font.getbbox(words, stroke_width=2)
        self._name = Image.new("RGBA", (math.ceil(right) + 4, math.ceil(bottom) + 4))
        self._write(Draw(self._name), words, (2, 2), "la")

    def _write(self, draw: ImageDraw, words: str, at: tuple[float, float], anchor: str) -> None:
        draw.text(
            at,
            words,
            font=self._font,
            fill=(255, 255, 255),
            anchor=anchor,
            stroke_width=2,
            stroke_fill=(0, 0, 0),
        )

    def draw(self, frame: Image, number: int) -> None:
        """Draw it into the frame of this number."""
        from PIL.ImageDraw import Draw

        draw = Draw(frame)
        width, height = frame.size
        edge = round(height / 30)
        frame.paste(self._name, (edge, edge), self._name)
        second, rest = divmod(number, self._fps)
        clock = f"{8 + second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}:{rest:02d}"
        self._write(draw, clock, (width - edge, edge + 2), "ra")
        radius = height / 24
        time = number / self._fps
        x = radius + _bounce(time * width / 3.1, width - 2 * radius)
        y = radius + _bounce(time * height / 2.3 + height / 3, height - 2 * radius)
        beat = rest * 10 < self._fps
        ring = (255, 255, 255) if beat else (255, 210, 30)
        box = (x - radius, y - radius, x + radius, y + radius)
        draw.ellipse(
            box, outline=ring, width=max(2, round(radius / 6)), fill=ring if beat else None
        )
        draw.line((x - radius / 2, y, x + radius / 2, y), fill=(200, 30, 30), width=2)
        draw.line((x, y - radius / 2, x, y + radius / 2), fill=(200, 30, 30), width=2)


def _bounce(way: float, room: float) -> float:
    """Return where something is that has moved this far between two walls."""
    way %= 2 * room
    return way if way < room else 2 * room - way
