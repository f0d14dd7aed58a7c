"""What can be said of the bundle without a browser."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from html.parser import HTMLParser

import httpx2
import pytest
from playwright._impl._driver import compute_driver_executable

from gcmem.serve.web import FOLDER, assets

VOID = {"meta", "link", "input", "img", "br", "hr"}
SCRIPTS = sorted(FOLDER.glob("*.js"))
HTML = (FOLDER / "index.html").read_text("utf-8")
CSS = (FOLDER / "style.css").read_text("utf-8")


class Reader(HTMLParser):
    """Collects the elements, and fails on tags that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str], tuple[str, ...]]] = []
        self.feed(HTML)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice"
        self.elements.append((tag, {n: v or "" for n, v in attrs}, tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def of(self, *tags: str) -> list[dict[str, str]]:
        return [attributes for tag, attributes, _ in self.elements if tag in tags]


@pytest.fixture(scope="module")
def document() -> Reader:
    return Reader()


def test_the_page_is_well_formed(document: Reader) -> None:
    assert HTML.startswith("<!doctype html>")
    assert document.open == []
    ids = Counter(a["id"] for _, a, _ in document.elements if "id" in a)
    assert [name for name, times in ids.items() if times > 1] == []


def test_nothing_is_inline_and_nothing_comes_from_elsewhere(document: Reader) -> None:
    assert document.of("style") == []
    assert all(script["src"].startswith("assets/") for script in document.of("script"))
    inline = [n for _, a, _ in document.elements for n in a if n == "style" or n.startswith("on")]
    assert inline == []
    everything = "\n".join(file.read_text("utf-8") for file in FOLDER.iterdir())
    addresses = set(re.findall(r"(?:https?:)?//[a-z][\w.-]+\.[a-z]{2,}", everything))
    assert addresses <= {"http://www.w3.org"}  # the name of the SVG language, never fetched


def test_every_file_that_is_named_is_there(document: Reader) -> None:
    served = {asset.path.removeprefix("/") for asset in assets()}
    named = {a.get("src") or a["href"] for a in document.of("script", "link", "img")}
    imported = {
        f"assets/{name}"
        for script in SCRIPTS
        for name in re.findall(r'from "\./([\w.]+)"', script.read_text("utf-8"))
    }
    assert named | imported <= served
    assert {f"assets/{script.name}" for script in SCRIPTS} == {
        path for path in named | imported if path.endswith(".js")
    }


def test_controls_have_names(document: Reader) -> None:
    labelled = {a["for"] for a in document.of("label") if "for" in a}
    for tag, attributes, inside in document.elements:
        if tag in ("input", "select"):
            assert "label" in inside or attributes["id"] in labelled, attributes
        if tag in ("section", "aside", "dialog"):
            assert attributes.keys() & {"aria-label", "aria-labelledby"}, attributes
    assert re.findall(r"<button[^>]*>\s*</button>", HTML) == []


def test_references_between_elements_lead_somewhere(document: Reader) -> None:
    ids = {a["id"] for _, a, _ in document.elements if "id" in a}
    for _, attributes, _ in document.elements:
        for name in ("for", "aria-labelledby", "aria-describedby"):
            assert set(attributes.get(name, "").split()) <= ids
    wanted = {n for s in SCRIPTS for n in re.findall(r'byId\("([\w-]+)"\)', s.read_text("utf-8"))}
    assert wanted <= ids


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_script_parses_and_never_writes_markup(script: object) -> None:
    source = next(s for s in SCRIPTS if s == script).read_text("utf-8")
    node = compute_driver_executable()[0]
    done = subprocess.run(
        [str(node), "--check", "--input-type=module"], input=source, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    writers = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|srcdoc"
    assert re.findall(writers, source) == []
    assert len(source.splitlines()) < 400


def _theme(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


LIGHT = _theme(CSS.split("@media (prefers-color-scheme: dark)")[0])
DARK = _theme(CSS.split(':root[data-theme="dark"] {')[1].split("}")[0])


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(theme: dict[str, str]) -> None:
    for text in ("ink", "muted", "accent", "stale", "doubt", "danger"):
        for behind in ("page", "panel", "sunken"):
            assert _contrast(theme[text], theme[behind]) >= 4.5, (text, behind)
    for text, behind in (
        ("on-accent", "accent"),
        ("muted", "stale-soft"),
        ("stale", "stale-soft"),
        ("ink", "doubt-soft"),
        ("muted", "doubt-soft"),
        ("doubt", "doubt-soft"),
        ("ink", "accent-soft"),
        ("muted", "accent-soft"),
        ("accent", "accent-soft"),
        ("danger", "danger-soft"),
    ):
        assert _contrast(theme[text], theme[behind]) >= 4.5, (text, behind)
    for shape in ("control", "focus", "doubt", "p0", "p1", "p2", "p3", "p4"):
        assert _contrast(theme[shape], theme["panel"]) >= 3, shape


def test_the_chosen_dark_theme_is_the_systems() -> None:
    system = CSS.split(':root:not([data-theme="light"]) {')[1].split("}")[0]
    assert _theme(system) == DARK
    assert DARK.keys() == LIGHT.keys()


def test_files_come_with_their_types_and_a_strict_policy(site: str) -> None:
    for asset in assets():
        reply = httpx2.get(site + asset.path)
        assert reply.status_code == 200
        assert reply.headers["content-type"] == asset.media_type
        assert reply.headers["x-content-type-options"] == "nosniff"
        policy = reply.headers["content-security-policy"]
        assert policy.startswith("default-src 'self';")
        assert "unsafe" not in policy
        assert "*" not in policy


def test_a_file_that_the_browser_has_is_not_sent_again(site: str) -> None:
    first = httpx2.get(site)
    assert first.headers["cache-control"] == "no-cache"
    again = httpx2.get(site, headers={"If-None-Match": f'"other", W/{first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert httpx2.get(site, headers={"If-None-Match": '"other"'}).status_code == 200
    assert httpx2.head(site).headers["etag"] == first.headers["etag"]


def test_only_the_bundle_is_served(site: str) -> None:
    for path in ("/assets/__init__.py", "/assets/../__init__.py", "/assets/", "/assets/%2e%2e/x"):
        assert httpx2.get(site + path).status_code == 404
