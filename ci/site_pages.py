"""Hook of MkDocs: the pages of the site beside those in docs, the navigation, and links between all of them.

The navigation is the table of pages in ``docs/README.md``. Files outside of docs that the documents link to, such as
CONTRIBUTING.md, are pages too; a link to a source file becomes its text. The reference of the API has a page for each
public module, made from the docstrings.
"""

from __future__ import annotations

import importlib
import posixpath
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]

#: Files outside of docs that belong to the site.
OUTSIDE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "bench/report/*")

#: Where they stand in the site.
REPOSITORY = "repository"

#: The modules of the reference. CrewAI cannot be installed beside other frameworks, so its integration is missing.
MODULES = (
    "locus_mysql",
    "locus_mysql.memory",
    "locus_mysql.working",
    "locus_mysql.transcripts",
    "locus_mysql.errors",
    "locus_mysql.integrations.langgraph",
    "locus_mysql.integrations.memu",
    "locus_mysql.integrations.claude_agent_sdk",
    "locus_mysql.integrations.pydantic_ai",
    "locus_mysql.integrations.openai_agents",
    "locus_mysql.integrations.google_adk",
    "locus_mysql.integrations.strands",
    "locus_mysql.integrations.py_key_value",
)

#: A fenced block, which is left as it is; or a link or a picture, with its text and its target.
LINK = re.compile(r"^( *```.*?^ *```)$|!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the navigation."""
    sections: list[dict[str, Any]] = [{"Overview": ["README.md", f"{REPOSITORY}/README.md"]}]
    _, _, pages_section = (ROOT / "docs/README.md").read_text(encoding="utf-8").partition("\n## Pages\n")
    for row in re.findall(r"^\| ([^|]+) \| (\[.*) \|$", pages_section, re.MULTILINE):
        title, pages = row
        linked = re.findall(r"\]\(([^)]+)\)", pages)
        sections.append({title.capitalize(): [_uri(ROOT / "docs" / page) for page in linked]})
    sections.append({"API": [_api_page(module) for module in MODULES]})
    config.nav = sections
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files outside of docs and the reference of the API."""
    pages: dict[str, str] = {}  # of the names that have been described, by their homes
    for pattern in OUTSIDE:
        for path in sorted(ROOT.glob(pattern)):
            files.append(File.generated(config, _uri(path), abs_src_path=str(path)))
    for module in MODULES:
        files.append(File.generated(config, _api_page(module), content=_reference(module, pages)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let the links of a page lead to other pages of the site."""
    uri = PurePosixPath(page.file.src_uri)
    source = ROOT.joinpath(*uri.parts[1:]) if uri.parts[0] == REPOSITORY else ROOT / "docs" / uri

    def link(match: re.Match[str]) -> str:
        block, text, target = match.groups()
        if block or "://" in target or target.startswith("#"):
            return match[0]
        path, hash_, anchor = target.partition("#")
        there = _uri((source.parent / path).resolve())
        if files.get_file_from_path(there) is None:
            return str(text)
        relative = posixpath.relpath(there, posixpath.dirname(page.file.src_uri))
        return match[0].replace(f"({target})", f"({relative}{hash_}{anchor})")

    return LINK.sub(link, markdown)


def _uri(path: Path) -> str:
    """Return the place of a file of the repository in the site."""
    relative = path.resolve().relative_to(ROOT).as_posix()
    return relative.removeprefix("docs/") if relative.startswith("docs/") else f"{REPOSITORY}/{relative}"


def _api_page(module: str) -> str:
    return f"api/{module}.md"


def _reference(name: str, pages: dict[str, str]) -> str:
    """Return the page about a module: its public names. A name that another module has too is described once."""
    module = importlib.import_module(name)
    parts = [f"# {name}\n\n{(module.__doc__ or '').partition(chr(10))[0]}\n"]
    own = [key for key, value in vars(module).items() if getattr(value, "__module__", None) == name and key[0] != "_"]
    for public in getattr(module, "__all__", own):
        value = getattr(module, public)
        home = getattr(value, "__module__", None)
        if not isinstance(home, str) or not home.startswith("locus_mysql") or not hasattr(value, "__qualname__"):
            continue
        described = f"{home}.{value.__qualname__}"
        if described in pages:
            parts.append(f"`{public}` is described in [{pages[described]}]({pages[described]}.md#{described}).\n")
        else:
            pages[described] = name
            parts.append(f"::: {described}\n")
    return "\n".join(parts)
