"""Gives a package index the README with absolute links, once ``Repository`` in ``[project.urls]`` names an address.

All other metadata is in ``pyproject.toml``. Relative links and pictures lead nowhere on a package index.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent


def readme_for_index() -> str:
    """Return the README; its links lead to the repository's files, if the address is known."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = project.get("urls", {}).get("Repository")
    if repository is None:
        return text

    base = repository.rstrip("/")
    # Pictures first, as a picture may be the label of a link.
    text = re.sub(r"(!\[[^\]]*\]\()(?![a-z]+:|#)", rf"\g<1>{base}/raw/HEAD/", text)
    return re.sub(r"(\]\()(?![a-z]+:|#)", rf"\g<1>{base}/blob/HEAD/", text)


setup(long_description=readme_for_index(), long_description_content_type="text/markdown")
