"""gcmem bench: one file per command; the data commands form their own group."""

from __future__ import annotations

import typer

from gcmem.cli.bench import data, epsilon, report, retrieval, run, theory, thresholds

app = typer.Typer(rich_markup_mode=None)
app.add_typer(data.app)
app.command()(run.run)
app.command()(report.report)
app.command()(report.compare)
app.command()(retrieval.retrieval)
app.command()(epsilon.epsilon)
app.command()(theory.theory)
app.command()(thresholds.thresholds)
