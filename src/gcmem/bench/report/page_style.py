"""The style of a run's page: light and dark palettes, and one sheet for screen and print."""

from __future__ import annotations

LIGHT = {
    "ground": "#ffffff",
    "card": "#f4f5f7",
    "ink": "#1b1f24",
    "soft": "#545b64",
    "line": "#c9ced6",
    "link": "#0a57a4",
    "kept": "#0a6b3d",
    "shadowed": "#a33205",
    "missed": "#545b64",
}
DARK = {
    "ground": "#14171b",
    "card": "#1e2329",
    "ink": "#e8eaed",
    "soft": "#a9b1bb",
    "line": "#414954",
    "link": "#86bdf7",
    "kept": "#6fd3a0",
    "shadowed": "#ff9d73",
    "missed": "#a9b1bb",
}
"""Every text colour has a contrast of 4.5:1 on `ground` and `card`."""

_SHEET = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0 auto;padding:1.25rem clamp(.75rem,3vw,2rem) 4rem;max-width:68rem;
 background:var(--ground);color:var(--ink);
 font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0 .75rem}
h2{font-size:1.3rem;margin:2.5rem 0 .75rem;padding-bottom:.3rem;border-bottom:1px solid var(--line)}
h3{display:inline;font-size:1.05rem;margin:0;font-weight:600}
h4{font-size:.95rem;margin:1rem 0 .35rem}
p{margin:.5rem 0}
a{color:var(--link)}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
code,.id{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.86em}
.soft,figcaption,.note{color:var(--soft)}
.skip{position:absolute;left:-99rem}
.skip:focus{position:static}
nav ul{columns:18rem;margin:.25rem 0;padding-left:1.2rem}
nav li{break-inside:avoid}
details{margin:.75rem 0;border:1px solid var(--line);border-radius:.5rem;background:var(--card)}
summary{cursor:pointer;padding:.6rem .85rem;overflow-wrap:anywhere}
.body{padding:0 .85rem .85rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .7rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
thead th{border-bottom:2px solid var(--ink);vertical-align:bottom}
td.number,th.number{text-align:right;white-space:nowrap}
.about th{font-weight:500;color:var(--soft)}
.about td{overflow-wrap:anywhere;min-width:9rem}
figure{margin:0}
figure .wide{background:#fff;border-radius:.35rem;padding:.5rem}
figure svg{display:block;width:100%;min-width:34rem;height:auto;max-width:52rem;margin:0 auto}
figure svg *{stroke-linejoin:round;stroke-linecap:butt}
figcaption{margin-top:.5rem;font-size:.92rem}
.answers{list-style:none;margin:.25rem 0;padding:0}
.answers li{padding:.1rem 0;overflow-wrap:anywhere}
.turns{list-style:none;margin:.25rem 0;padding:0}
.turns li{margin:.4rem 0;padding:.35rem .6rem;border-left:.3rem solid var(--missed);
 background:var(--ground);overflow-wrap:anywhere}
.turns li:target{outline:2px solid var(--link)}
.turns .kept{border-left-color:var(--kept)}
.turns .shadowed{border-left:.3rem double var(--shadowed)}
.turns .missed{border-left-style:dotted}
.state{font-weight:600;color:var(--missed)}
.kept .state,.right{color:var(--kept)}
.shadowed .state,.wrong{color:var(--shadowed)}
.turns p{margin:.15rem 0 0;white-space:pre-wrap}
.missed p{color:var(--soft)}
@media (max-width:30rem){h1{font-size:1.4rem}.body{padding:0 .6rem .6rem}}
@media print{
 :root{--card:#fff}
 body{max-width:none;padding:0;font-size:10pt}
 .skip{display:none}
 a{color:inherit}
 details{border:0;margin:.4rem 0}
 details::details-content{content-visibility:visible;block-size:auto;height:auto}
 .wide{overflow:visible}
 figure svg{min-width:0;max-width:15cm}
 figure,.turns li,tr{break-inside:avoid}
 h2,summary{break-after:avoid}
 table{font-size:8pt}
}
"""


def style() -> str:
    """Returns the whole style sheet."""
    light, dark = (
        "".join(f"--{name}:{colour};" for name, colour in palette.items())
        for palette in (LIGHT, DARK)
    )
    # Paper is always white, so the dark palette is only for screens.
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}{_SHEET}"
    )
