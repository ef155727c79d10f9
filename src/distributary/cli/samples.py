"""`distributary samples`: content to try conversions on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from distributary.cli.content_files import write_content
from distributary.cli.options import Seed
from distributary.cli.progress import progress
from distributary.errors import BadInput, quoted

__all__ = ["EXAMPLES", "samples"]

EXAMPLES = """\
\b
Examples:
  distributary samples content
  distributary samples content --seed 7
"""


def samples(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where to; made if it is not there.")
    ],
    seed: Seed = 0,
) -> None:
    """Write sample content: an annotated map, a video, a photo, a notice and a sound.

    All of it shows the same imaginary country in a flood. A seed other than 0 is stamped on
    it as the number of an exercise, so that its content is new.
    """
    if directory.exists() and not directory.is_dir():
        raise BadInput("DIR", f"{quoted(directory)} is a file")
    from distributary.media.samples import clip_mp4, map_pdf, notice_text, photo_jpeg, tone_wav

    makers: list[tuple[str, str, Callable[[], bytes]]] = [
        ("map.pdf", "annotated map, 4 pages", lambda: map_pdf(seed=seed)),
        ("clip.mp4", "video with sound, 5 s, 640 x 480", lambda: clip_mp4(seed=seed)),
        ("photo.jpg", "photo, 2560 x 1707", lambda: photo_jpeg(seed=seed)),
        ("notice.txt", "text with numbered items, UTF-8", lambda: notice_text(seed).encode()),
        ("tone.wav", "tones, 5 s", lambda: tone_wav(seed=seed)),
    ]
    contents: list[bytes] = []
    # All is made before any of it is written: a missing package then leaves nothing behind.
    with progress() as observe:
        for name, _, make in makers:
            if observe is not None:
                observe(name, len(contents), len(makers))
            contents.append(make())
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadInput("DIR", f"{quoted(directory)} cannot be made: {reason}") from None
    for (name, words, _), content in zip(makers, contents, strict=True):
        write_content(content, directory / name, "DIR")
        print(f"{directory / name}  {len(content):>9,} bytes  {words}")
    print(f"seed {seed}", file=sys.stderr)
