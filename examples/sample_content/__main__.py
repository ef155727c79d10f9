"""Draw the sample content: `python -m examples.sample_content [DIR] [--seed N]`.

Without a directory, the files that come with distributary are drawn anew.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from examples.sample_content import clip_mp4, map_pdf, notice_text, photo_jpeg

SHIPPED = Path(__file__).parents[2] / "src" / "distributary" / "media" / "samples"
# The four files together go into every installation: a photo of a third of its size will do.
_PHOTO_QUALITY = 55


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw a map, a clip, a photo and a notice of one country."""
    parser = argparse.ArgumentParser(prog="python -m examples.sample_content")
    parser.add_argument("directory", nargs="?", type=Path, default=SHIPPED)
    parser.add_argument("--seed", type=int, default=0, help="which country")
    options = parser.parse_args(arguments)
    seed: int = options.seed
    directory: Path = options.directory
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "map.pdf").write_bytes(map_pdf(seed=seed))
    (directory / "clip.mp4").write_bytes(clip_mp4(seed=seed))
    (directory / "photo.jpg").write_bytes(photo_jpeg(seed=seed, quality=_PHOTO_QUALITY))
    (directory / "notice.txt").write_text(notice_text(seed), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
