"""One HTML page of a run: settings, tables, figures, and where the paths disagree.

The page is self-contained: it loads nothing and runs no script.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from gcmem.bench.report.captions import CAPTIONS
from gcmem.bench.report.disagreements import Disagreement, Fate, differing, disagreement_html
from gcmem.bench.report.page_style import style
from gcmem.bench.run.outcomes import Run

__all__ = [
    "Disagreement",
    "Fate",
    "Figure",
    "Table",
    "inline_svg",
    "load_figures",
    "page_html",
    "write_page",
]

Table = tuple[str, str, list[str], list[list[str]], str]
"""Name, title, columns, rows and note."""

# Blocks loading and scripts, even if some text were rendered as markup.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
NUMBER = re.compile(r"[-+−±]?\d[-+−–±\d\s.,%*/\[\]()]*(pp|m?s)?|[—–-]?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure on the page; `svg` is the content of its file."""

    name: str
    title: str
    caption: str
    svg: str = field(repr=False)


def load_figures(paths: Sequence[Path]) -> list[Figure]:
    """Reads the SVG files among `paths` and adds their captions."""
    figures = []
    for path in paths:
        if path.suffix == ".svg":
            title, caption = CAPTIONS.get(path.stem, (path.stem.replace("_", " "), ""))
            svg = path.read_text("utf-8")
            figures.append(Figure(name=path.stem, title=title, caption=caption, svg=svg))
    return figures


def write_page(
    path: Path,
    run: Run,
    *,
    title: str = "GC-Mem: an evaluation run",
    tables: Sequence[Table] = (),
    figures: Sequence[Figure] = (),
    disagreements: Sequence[Disagreement] = (),
    limit: int = 20,
) -> Path:
    """Writes the page and returns its path; at most `limit` disagreements are shown."""
    html = page_html(
        run,
        title=title,
        tables=tables,
        figures=figures,
        disagreements=disagreements,
        limit=limit,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(html, "utf-8")
    return path


def page_html(
    run: Run,
    *,
    title: str = "GC-Mem: an evaluation run",
    tables: Sequence[Table] = (),
    figures: Sequence[Figure] = (),
    disagreements: Sequence[Disagreement] = (),
    limit: int = 20,
) -> str:
    """Returns the page as HTML."""
    parts = [
        ("run", "The run", [], _about(run)),
        ("tables", "Tables", [_entry("table", t[0], t[1]) for t in tables], _tables(tables)),
        (
            "figures",
            "Figures",
            [_entry("figure", f.name, f.title) for f in figures],
            "".join(_figure(figure) for figure in figures),
        ),
        ("paths", "Where the paths disagree", [], _disagreements(disagreements, limit)),
    ]
    shown = [part for part in parts if part[3]]
    contents = "".join(
        f'<li><a href="#{anchor}">{heading}</a>{_sublist(entries)}</li>'
        for anchor, heading, entries, _ in shown
    )
    sections = "".join(
        f'<section id="{anchor}" aria-labelledby="{anchor}-heading">'
        f'<h2 id="{anchor}-heading">{heading}</h2>{body}</section>\n'
        for anchor, heading, _, body in shown
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style()}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#content">Skip to the content</a>\n'
        f"<header><h1>{escape(title)}</h1>{_summary(run)}</header>\n"
        f'<nav aria-label="Contents"><details open><summary><h3>Contents</h3></summary>'
        f'<div class="body"><ul>{contents}</ul></div></details></nav>\n'
        f'<main id="content">\n{sections}</main>\n</body>\n</html>\n'
    )


def _summary(run: Run) -> str:
    conditions = {outcome.condition for outcome in run.outcomes}
    datasets = sorted({condition.dataset for condition in conditions})
    readers = sorted({condition.reader for condition in conditions})
    failed = sum(bool(outcome.error) for outcome in run.outcomes)
    lines = [f"{len(run.outcomes):,} outcomes of {len(conditions):,} conditions; {failed:,} failed"]
    lines += [f"datasets: {', '.join(datasets)}"] if datasets else []
    lines += [f"readers: {', '.join(readers)}"] if readers else []
    return "".join(f'<p class="soft">{escape(line)}</p>' for line in lines)


def _about(run: Run) -> str:
    """Returns `run.about` as HTML: plain values first, then one block per nested mapping."""
    single = {k: v for k, v in run.about.items() if not isinstance(v, Mapping)}
    nested = {k: v for k, v in run.about.items() if isinstance(v, Mapping) and v}
    blocks = {**({"Settings of the run": single} if single else {}), **nested}
    return "".join(
        _block(
            name[:1].upper() + name[1:].replace("_", " "),
            '<div class="wide"><table class="about"><tbody>'
            + "".join(
                f'<tr><th scope="row">{escape(key)}</th><td><code>{escape(value)}</code></td></tr>'
                for key, value in _flat(values)
            )
            + "</tbody></table></div>",
            is_open=number == 0,
        )
        for number, (name, values) in enumerate(blocks.items())
    )


def _flat(values: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key, value in values.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping) and value:
            rows += _flat(value, f"{name}.")
        elif isinstance(value, Sequence) and not isinstance(value, str):
            rows.append((name, ", ".join(str(item) for item in value) or "—"))
        else:
            rows.append((name, "—" if value in (None, "", {}) else str(value)))
    return rows


def _tables(tables: Sequence[Table]) -> str:
    return "".join(_table(*table) for table in tables)


def _table(name: str, title: str, columns: list[str], rows: list[list[str]], note: str) -> str:
    # A column is right-aligned if all its cells are numbers.
    kinds = [
        ' class="number"'
        if rows and all(NUMBER.fullmatch(_cell(row, place)) for row in rows)
        else ""
        for place in range(len(columns))
    ]
    head = "".join(
        f'<th scope="col"{kind}>{escape(column)}</th>'
        for kind, column in zip(kinds, columns, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{escape(_cell(row, i))}</td>" for i, kind in enumerate(kinds))
        + "</tr>"
        for row in rows
    )
    return _block(
        title,
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(title)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        + (f'<p class="note">{escape(note)}</p>' if note else ""),
        anchor=f"table-{_slug(name)}",
    )


def _cell(row: Sequence[str], place: int) -> str:
    return str(row[place]).strip() if place < len(row) else ""


def _figure(figure: Figure) -> str:
    return _block(
        figure.title,
        f'<figure><div class="wide" tabindex="0" role="region" aria-label="{escape(figure.title)}">'
        f"{inline_svg(figure.svg, name=_slug(figure.name), label=figure.title)}</div>"
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>",
        anchor=f"figure-{_slug(figure.name)}",
    )


def inline_svg(svg: str, *, name: str, label: str) -> str:
    """Returns an SVG file as an HTML element.

    Ids get a prefix, because figures share ids. XML namespaces are removed: HTML needs none.
    """
    start = svg.find("<svg")
    body = re.sub(
        r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg[start:], flags=re.S
    )
    opening, rest = body.split(">", 1)
    opening = re.sub(r'\s(xmlns(:\w+)?|version|width|height)="[^"]*"', "", opening)
    rest = re.sub(r'\bid="', f'id="{name}-', rest)
    rest = re.sub(r'(?:xlink:)?href="#', f'href="#{name}-', rest)
    rest = rest.replace("url(#", f"url(#{name}-").replace("xlink:href", "href")
    return f'{opening} role="img" aria-label="{escape(label)}">{rest.strip()}'


def _disagreements(found: Sequence[Disagreement], limit: int) -> str:
    different = differing(found)
    if not different:
        return ""
    shown = different[:limit]
    count = f"{len(shown)} of {len(different)} answers on which GC-Mem and standard RAG differ."
    legend = "● kept, ✕ shadowed (with the newer turn that shadows it), ○ not retrieved."
    blocks = "".join(
        _block(
            item.instance.question,
            disagreement_html(item, prefix=f"case-{number}"),
            anchor=f"case-{number}",
            is_open=number == 1,
        )
        for number, item in enumerate(shown, 1)
    )
    return f"<p>{count} Turns, in order of time: {legend}</p>{blocks}"


def _block(heading: str, body: str, *, anchor: str = "", is_open: bool = True) -> str:
    marks = (f' id="{anchor}"' if anchor else "") + (" open" if is_open else "")
    return (
        f"<details{marks}><summary><h3>{escape(heading)}</h3></summary>"
        f'<div class="body">{body}</div></details>\n'
    )


def _entry(kind: str, name: str, title: str) -> str:
    return f'<li><a href="#{kind}-{_slug(name)}">{escape(title)}</a></li>'


def _sublist(entries: Sequence[str]) -> str:
    return f"<ul>{''.join(entries)}</ul>" if entries else ""


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "part"
