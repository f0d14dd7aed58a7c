from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

from gcmem.bench.data.instances import BenchTurn, Instance
from gcmem.bench.report.page import (
    Disagreement,
    Fate,
    Table,
    inline_svg,
    load_figures,
    page_html,
    write_page,
)
from gcmem.bench.report.page_style import DARK, LIGHT
from gcmem.bench.report.plots import PLOTS
from gcmem.bench.run.outcomes import Run
from gcmem.frozen import FrozenDict
from tests.unit.bench.synthetic import synthetic_run

HOSTILE = "<script>alert('x')</script>"
VOID = {"meta", "link", "br", "img", "hr", "input"}
RUN = synthetic_run()
TABLES: list[Table] = [
    ("headline", f"Headline {HOSTILE}", ["dataset", "ΔGC"], [["medium", "+4.0"], [HOSTILE, "—"]],
     f"Note {HOSTILE}"),
]  # fmt: skip


def instance(number: int = 1) -> Instance:
    day = [datetime(2026, 1, day, 9, tzinfo=UTC) for day in (1, 2, 3)]
    return Instance(
        id=f"i{number}",
        family="city",
        question=f"Where does {HOSTILE} live?",
        options=("Lyon", "Bern", HOSTILE),
        answer="Bern",
        turns=(
            BenchTurn(id="t3", text="I moved to Bern.", kind="new", at=day[2], state="Bern"),
            BenchTurn(id="t1", text=f"{HOSTILE} Lyon is fine.", kind="old", at=day[0]),
            BenchTurn(id="t2", text="Lovely weather.", kind="distractor", at=day[1]),
            BenchTurn(id="t0", text="Undated.", kind="other", at=None),
        ),
    )


def disagreement(number: int = 1, *, gcmem: str = "Bern") -> Disagreement:
    return Disagreement(
        instance=instance(number),
        answers={"standard": "Lyon", "gcmem": gcmem},
        fates=(
            Fate(turn="t1", status="shadowed", witness="t3"),
            Fate(turn="t3", status="kept"),
        ),
        where="small-reader, medium",
    )


class Reader(HTMLParser):
    """Collects the elements, ids and text of a page, and checks that its tags are balanced."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("page")
    drawn = [path for name in ("recall", "lift_heatmap") for path in PLOTS[name](RUN, folder)]
    page = write_page(
        folder / "deep" / "index.html",
        RUN,
        tables=TABLES,
        figures=load_figures(drawn),
        disagreements=[disagreement(1), disagreement(2, gcmem="Lyon"), disagreement(3)],
    )
    return page.read_text("utf-8")


def test_the_page_is_sound_and_its_links_lead_somewhere(html: str) -> None:
    page = Reader(html)
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [str(attrs["href"]) for tag, attrs in page.elements if tag in ("a", "use")]
    assert links
    assert all(link.startswith("#") and link[1:] in ids for link in links)
    assert {"h1", "h2", "h3", "nav", "main", "figure", "figcaption", "details"} <= {
        tag for tag, _ in page.elements
    }


def test_the_page_loads_nothing_and_runs_nothing(html: str) -> None:
    assert not re.search(r"https?://|@import|url\((?!#)", html)
    page = Reader(html)
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in page.elements}
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    assert all(str(attrs.get("src", "data:")).startswith("data:") for _, attrs in page.elements)


def test_hostile_text_is_shown_and_not_run(html: str) -> None:
    assert "<script" not in html
    assert Reader(html).text.count(HOSTILE) >= 5
    run = Run(outcomes=(), about=FrozenDict({HOSTILE: HOSTILE, "nested": {HOSTILE: [HOSTILE]}}))
    page = page_html(run, title=HOSTILE)
    assert "<script" not in page
    assert Reader(page).text.count(HOSTILE) >= 6


def test_settings_versions_and_hashes_are_on_the_page(html: str) -> None:
    text = Reader(html).text
    for shown in ("0123456789abcdef", "2026-01-02", "0, 1", "numpy", "datasets", "ab" * 32):
        assert shown in text.lower()


def test_turns_are_told_apart_in_order_of_time(html: str) -> None:
    for status in ("● kept", "✕ shadowed by t3", "○ not retrieved"):
        assert status in Reader(html).text.replace("\n", " ")
    case = html[html.index('id="case-1"') : html.index('id="case-2"')]
    places = [case.index(f'<span class="id">{turn}</span> <span') for turn in ("t1", "t2", "t3")]
    assert places == sorted(places)
    assert case.index("Undated.") > places[-1]
    assert re.search(r'by <a href="#case-1-turn-3">', case)
    assert "✓ right" in case
    assert "✗ wrong" in case


def test_only_answers_that_differ_are_shown_and_no_more_than_the_limit(html: str) -> None:
    assert "2 of 2 answers" in html
    assert 'id="case-3"' not in html
    few = page_html(RUN, disagreements=[disagreement(n) for n in range(5)], limit=2)
    assert "2 of 5 answers" in few
    assert 'id="case-3"' not in few


def test_a_page_without_parts_leaves_their_headings_out() -> None:
    page = page_html(Run(outcomes=()))
    assert "<h2" not in page
    Reader(page)


def test_figures_on_one_page_share_no_ids() -> None:
    svg = (
        '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1">'
        '<defs><path id="m"/></defs><use xlink:href="#m" clip-path="url(#m)"/></svg>\n'
    )
    assert inline_svg(svg, name="one", label='"x"') == (
        '<svg viewBox="0 0 1 1" role="img" aria-label="&quot;x&quot;">'
        '<defs><path id="one-m"/></defs><use href="#one-m" clip-path="url(#one-m)"/></svg>'
    )


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_text_stands_out_from_its_ground(palette: dict[str, str]) -> None:
    for name in ("ink", "soft", "link", "kept", "shadowed", "missed"):
        for ground in ("ground", "card"):
            assert _contrast(palette[name], palette[ground]) >= 4.5, (name, ground)


def _contrast(first: str, second: str) -> float:
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
