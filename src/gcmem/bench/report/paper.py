"""The paper's tables, transcribed; each names its label in the paper's source.

Figures are kept as printed strings: percentages, percentage points, seconds, counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gcmem.frozen import FrozenDict

ABSENT: Mapping[str, str] = FrozenDict()
K = 10
"""The paper's k."""
POOLED = ("chat-medium", "chat-large")
"""The paper's Medium and Large; it pools them in tables that name no dataset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTable:
    """One table of the paper: figures by name, for each key."""

    source: str
    rows: Mapping[tuple[str, ...], Mapping[str, str]]

    def at(self, *key: str) -> Mapping[str, str]:
        """Returns the figures at a key; empty if the paper has none."""
        return self.rows.get(key, ABSENT)


def model_name(name: str) -> str:
    """Returns a model's name in the paper's spelling: lower case, without the provider."""
    return name.rsplit("/", 1)[-1].rsplit(":", 1)[-1].split("@", 1)[0].strip().lower()


def _table(source: str, *, keys: int, text: str) -> PaperTable:
    header, *lines = [line.split() for line in text.strip().splitlines()]
    rows = {
        tuple(line[:keys]): FrozenDict(zip(header[keys:], line[keys:], strict=True))
        for line in lines
    }
    return PaperTable(source=source, rows=MappingProxyType(rows))


BASELINES = _table(
    "tab:baselines",
    keys=1,
    text="""
model         split   n  standard  timestamp  gcmem
deepseek-v3   Large  74      56.8       20.3  97.3*
o4-mini      Medium  38      28.9       10.5  92.1*
gpt-4o       Medium  38      68.4       10.5   10.5
""",
)
"""On the mutation benchmark; a star means p < 0.01."""

STM_LIFT = _table(
    "tab:stm_lift",
    keys=2,
    text="""
dataset      stm  standard  gcmem  delta
chat-medium  off      24.4   40.2  +15.8
chat-medium  on       46.1   68.1  +22.0
chat-large   off      15.9   30.4  +14.4
chat-large   on       34.5   62.9  +28.4
""",
)
"""Means over its models."""

DETECTORS = _table(
    "tab:precision",
    keys=1,
    text="""
model         precision  recall    f1  delta  efficacy
deepseek-v3        98.9    95.2  0.97  +69.0   Optimal
o4-mini            98.1    99.8  0.99  +79.0   Optimal
gpt-4o             99.7    36.6  0.54   +4.0  Marginal
gpt-4.1-mini      100.0     0.7  0.01   -0.2     Fails
""",
)
"""On the mutation benchmark; the model is both oracle and reader."""

MULTI_FACTOR = _table(
    "tab:ablation",
    keys=1,
    text="""
factors                            medium  large
recency                              94.7   97.3
recency+relevance                    86.8   96.0
recency+relevance+usage              10.5   18.9
recency+relevance+usage+stability    10.5   18.9
""",
)
"""With o4-mini, on splits of the mutation benchmark; recency alone is the paper's equation 5."""

BAG_OF_FACTS = _table(
    "tab:bof_evaluation",
    keys=1,
    text="""
model        standard  gcmem  delta  shadows
deepseek-v3      11.9   54.3  +42.4    13.28
gpt-4o           12.9   53.3  +40.3    15.70
phi-4            12.3   44.6  +32.3    13.73
o4-mini          19.2   33.4  +14.2     6.21
""",
)
"""Means of the two chat datasets; the last model is printed as 04-mini."""

LATENCY = _table(
    "tab:latency_matrix",
    keys=2,
    text="""
dataset      stm  wall_s  instance_s  shadows
chat-medium  off     525        10.9     1.55
chat-medium  on     1276        26.6     3.52
chat-large   off     685        10.5     1.39
chat-large   on      973        15.0     4.07
""",
)
"""In seconds; differs from the next table for Large with STM."""

LATENCY_APPENDIX = _table(
    "app:tab:latency",
    keys=2,
    text="""
dataset      stm  wall_s  instance_s  shadows
chat-medium  off     525        10.9     1.55
chat-medium  on     1276        26.6     3.52
chat-large   off     685        10.5     1.39
chat-large   on     1494        23.0     3.91
""",
)
"""The same table in the appendix."""

DATASETS = _table(
    "app:tab:dataset_d1",
    keys=1,
    text="""
dataset       n  families  severities   old  old_sd  new  new_sd  others  others_sd  turns
chat-medium  48        12           4  27.5    14.9  3.0     1.2    12.5        1.7  2,033
chat-large   65        13           5  27.0    13.4  3.0     1.1    11.4        1.7  2,690
""",
)
"""Turns per instance, means with standard deviations."""

HEADLINE = _table(
    "app:tab:headline",
    keys=2,
    text="""
dataset      stm  standard  timestamp  gcmem  delta
chat-medium  off      24.4       24.4   40.2  +15.8
chat-medium  on       46.1       71.6   68.1  +22.0
chat-large   off      15.9       16.2   30.4  +14.4
chat-large   on       34.4       67.5   61.5  +27.1
""",
)
"""Means over its models and prompt modes."""

RECALL = _table(
    "app:tab:stm_recall",
    keys=2,
    text="""
dataset      stm   old   new  distractor
chat-medium  off  24.1  37.4         5.0
chat-medium  on   32.1  98.2        43.2
chat-large   off  22.7  29.9         4.6
chat-large   on   29.1  98.5        47.9
""",
)
"""Share of the turns of each kind that were retrieved."""

BAG_HEADLINE = _table(
    "app:tab:bof_headline",
    keys=1,
    text="""
dataset       n  standard  standard_sd  timestamp  gcmem  delta  delta_sd
chat-medium  48      20.4         10.7       18.5   55.2  +34.8      12.2
chat-large   65      12.1          4.2       11.7   36.5  +24.4      11.6
""",
)
"""Means over seven models, with the standard deviation between models."""

BAG_ACROSS = _table(
    "app:tab:bof_compare_chat",
    keys=1,
    text="""
model          off     on    bag
deepseek-v3  +18.9  +32.3  +41.7
gpt-5-chat   +16.0  +18.1  +32.6
phi-4        +19.8  +27.1  +48.8
""",
)
"""ΔGC on Chat-Medium, means over the prompt modes."""

CONDITIONS = _table(
    "app:tab:per_condition",
    keys=4,
    text="""
dataset stm model mode standard timestamp gcmem delta old new distractor shadows n errors wall_s
chat-medium off deepseek-v3  forced-choice 25.0 20.8 45.8 +20.8 24.1 37.2  5.0 1.73 48  0  267
chat-medium off deepseek-v3  allow-unclear 23.4 19.1 40.4 +17.0 24.3 38.0  5.0 1.77 47  1  259
chat-medium off gpt-4o       forced-choice 20.8 22.9 47.9 +27.1 24.1 37.2  5.0 2.27 48  0  669
chat-medium off gpt-4o       allow-unclear 12.5 18.8 29.2 +16.7 24.1 37.2  5.0 2.19 48  0  486
chat-medium off gpt-4.1      forced-choice 20.8 22.9 43.8 +22.9 24.1 37.2  5.0 1.73 48  0  387
chat-medium off gpt-4.1      allow-unclear 22.9 22.9 35.4 +12.5 24.1 37.2  5.0 1.69 48  0  375
chat-medium off gpt-4.1-mini forced-choice 33.3 31.2 33.3  +0.0 24.1 37.2  5.0 0.92 48  0  561
chat-medium off gpt-4.1-mini allow-unclear 29.2 27.1 37.5  +8.3 24.1 37.2  5.0 0.88 48  0  560
chat-medium off gpt-5-chat   forced-choice 34.0 29.8 48.9 +14.9 23.8 38.0  5.1 1.70 47  1  239
chat-medium off gpt-5-chat   allow-unclear 23.4 25.5 40.4 +17.0 24.2 38.0  4.9 1.66 47  1  243
chat-medium off o4-mini      forced-choice 25.0 25.0 39.6 +14.6 24.1 37.2  5.0 0.92 48  0 1347
chat-medium off o4-mini      allow-unclear 22.9 18.8 33.3 +10.4 24.1 37.2  5.0 0.90 48  0 1330
chat-medium off phi-4        forced-choice 31.2 35.4 47.9 +16.7 24.1 37.2  5.0 1.67 48  0  330
chat-medium off phi-4        allow-unclear 16.7 20.8 39.6 +22.9 24.1 37.2  5.0 1.73 48  0  297
chat-medium on  deepseek-v3  forced-choice 37.5 79.2 70.8 +33.3 32.1 98.2 43.3 3.81 48  0  868
chat-medium on  deepseek-v3  allow-unclear 29.2 62.5 60.4 +31.2 32.1 98.2 43.3 3.77 48  0  914
chat-medium on  gpt-4o       forced-choice 43.8 79.2 77.1 +33.3 32.1 98.2 43.3 4.77 48  0 1198
chat-medium on  gpt-4o       allow-unclear 45.8 62.5 68.8 +22.9 32.1 98.2 43.3 4.71 48  0 1252
chat-medium on  gpt-4.1      forced-choice 46.8 76.6 70.2 +23.4 32.2 98.2 43.0 4.79 47  1  733
chat-medium on  gpt-4.1      allow-unclear 40.4 72.3 68.1 +27.7 32.2 98.2 43.0 4.91 47  1  720
chat-medium on  gpt-4.1-mini forced-choice 58.3 72.9 66.7  +8.3 32.1 98.2 43.3 1.90 48  0 1514
chat-medium on  gpt-4.1-mini allow-unclear 52.1 72.9 62.5 +10.4 32.1 98.2 43.3 2.17 48  0 1092
chat-medium on  gpt-5-chat   forced-choice 53.2 72.3 72.3 +19.1 32.2 98.2 43.0 3.94 47  1 1194
chat-medium on  gpt-5-chat   allow-unclear 53.2 68.1 70.2 +17.0 32.2 98.2 43.0 3.91 47  1 1060
chat-medium on  o4-mini      forced-choice 45.8 68.8 58.3 +12.5 32.1 98.2 43.3 1.44 48  0 3113
chat-medium on  o4-mini      allow-unclear 41.7 62.5 56.2 +14.6 32.1 98.2 43.3 1.50 48  0 2874
chat-medium on  phi-4        forced-choice 58.3 85.4 83.3 +25.0 32.1 98.2 43.3 3.92 48  0  709
chat-medium on  phi-4        allow-unclear 39.6 66.7 68.8 +29.2 32.1 98.2 43.3 3.71 48  0  623
chat-large  off deepseek-v3  forced-choice 15.4 13.9 38.5 +23.1 22.7 29.9  4.5 1.54 65  0  366
chat-large  off deepseek-v3  allow-unclear 15.5 19.0 31.0 +15.5 22.9 29.3  4.6 1.38 58  7  365
chat-large  off gpt-4o       forced-choice 15.4 16.9 35.4 +20.0 22.7 29.9  4.5 2.34 65  0  459
chat-large  off gpt-4o       allow-unclear  7.7  7.7 30.8 +23.1 22.7 29.9  4.5 2.32 65  0  441
chat-large  off gpt-4.1      forced-choice 15.4 16.9 33.9 +18.5 22.7 29.9  4.5 1.95 65  0  480
chat-large  off gpt-4.1      allow-unclear 16.9 21.5 29.2 +12.3 22.7 29.9  4.5 1.82 65  0  478
chat-large  off gpt-4.1-mini forced-choice 18.5 21.5 27.7  +9.2 22.7 29.9  4.5 0.60 65  0  414
chat-large  off gpt-4.1-mini allow-unclear 20.0 18.5 21.5  +1.5 22.7 29.9  4.5 0.62 65  0  407
chat-large  off gpt-5-chat   forced-choice 20.0 16.0 36.0 +16.0 22.4 29.9  5.8 1.84 50 15  650
chat-large  off gpt-5-chat   allow-unclear 20.0 15.4 35.4 +15.4 22.7 29.9  4.5 1.51 65  0  826
chat-large  off o4-mini      forced-choice 10.8 13.9 27.7 +16.9 22.7 29.9  4.5 0.55 65  0 1895
chat-large  off o4-mini      allow-unclear 12.3 12.3 23.1 +10.8 22.7 29.9  4.5 0.60 65  0 2139
chat-large  off phi-4        forced-choice 18.5 20.0 30.8 +12.3 22.7 29.9  4.5 1.15 65  0  345
chat-large  off phi-4        allow-unclear 16.9 13.9 24.6  +7.7 22.7 29.9  4.5 1.23 65  0  331
chat-large  on  deepseek-v3  forced-choice 27.7 80.0 69.2 +41.5 29.1 98.5 47.8 4.51 65  0 1270
chat-large  on  deepseek-v3  allow-unclear 23.1 61.5 63.1 +40.0 29.1 98.5 47.8 4.46 65  0 1207
chat-large  on  gpt-4o       forced-choice 36.9 80.0 83.1 +46.2 29.1 98.5 47.8 5.51 65  0 1593
chat-large  on  gpt-4o       allow-unclear 33.9 47.7 58.5 +24.6 29.1 98.5 47.8 5.43 65  0 1613
chat-large  on  gpt-4.1      forced-choice 28.1 79.7 67.2 +39.1 29.3 98.4 48.2 5.09 64  1  794
chat-large  on  gpt-4.1      allow-unclear 33.3 55.6 55.6 +22.2 28.9 98.4 48.0 4.87 63  2  791
chat-large  on  gpt-4.1-mini forced-choice 36.9 75.4 55.4 +18.5 29.1 98.5 47.8 2.29 65  0 1019
chat-large  on  gpt-4.1-mini allow-unclear 35.4 60.0 47.7 +12.3 29.1 98.5 47.8 2.20 65  0  946
chat-large  on  gpt-5-chat   forced-choice 39.7 76.2 68.2 +28.6 28.9 98.4 48.0 4.25 63  2 1166
chat-large  on  gpt-5-chat   allow-unclear 39.1 68.8 65.6 +26.6 29.3 98.4 48.2 4.31 64  1  982
chat-large  on  o4-mini      forced-choice 33.9 70.8 44.6 +10.8 29.1 98.5 47.8 1.62 65  0 3954
chat-large  on  o4-mini      allow-unclear 32.3 58.5 46.2 +13.9 29.1 98.5 47.8 1.54 65  0 4030
chat-large  on  phi-4        forced-choice 47.7 80.0 75.4 +27.7 29.1 98.5 47.8 4.28 65  0  762
chat-large  on  phi-4        allow-unclear 33.9 50.8 61.5 +27.7 29.1 98.5 47.8 4.42 65  0  792
""",
)
"""Every cell. The paper calls the seconds a mean per instance, but they are wall time per cell."""

MODES = _table(
    "app:tab:mode_ablation",
    keys=2,
    text="""
stm  model         forced-choice  allow-unclear
off  deepseek-v3           +22.0          +16.3
off  gpt-4o                +23.5          +19.9
off  gpt-4.1               +20.7          +12.4
off  gpt-4.1-mini           +4.6           +4.9
off  gpt-5-chat            +15.4          +16.2
off  o4-mini               +15.8          +10.6
off  phi-4                 +14.5          +15.3
on   deepseek-v3           +37.4          +35.6
on   gpt-4o                +39.7          +23.8
on   gpt-4.1               +31.2          +24.9
on   gpt-4.1-mini          +13.4          +11.4
on   gpt-5-chat            +23.9          +21.8
on   o4-mini               +11.6          +14.2
on   phi-4                 +26.3          +28.4
""",
)
"""Mean ΔGC over both chat datasets."""

SHADOWS = _table(
    "app:tab:kappa_shadows",
    keys=3,
    text="""
stm  model         mode           shadows
off  deepseek-v3   forced-choice     1.64
off  deepseek-v3   allow-unclear     1.57
off  gpt-4o        forced-choice     2.30
off  gpt-4o        allow-unclear     2.25
off  gpt-4.1       forced-choice     1.84
off  gpt-4.1       allow-unclear     1.75
off  gpt-4.1-mini  forced-choice     0.76
off  gpt-4.1-mini  allow-unclear     0.75
off  gpt-5-chat    forced-choice     1.77
off  gpt-5-chat    allow-unclear     1.58
off  o4-mini       forced-choice     0.74
off  o4-mini       allow-unclear     0.75
off  phi-4         forced-choice     1.41
off  phi-4         allow-unclear     1.48
on   deepseek-v3   forced-choice     4.16
on   deepseek-v3   allow-unclear     4.12
on   gpt-4o        forced-choice     5.14
on   gpt-4o        allow-unclear     5.07
on   gpt-4.1       forced-choice     4.94
on   gpt-4.1       allow-unclear     4.89
on   gpt-4.1-mini  forced-choice     2.09
on   gpt-4.1-mini  allow-unclear     2.19
on   gpt-5-chat    forced-choice     4.09
on   gpt-5-chat    allow-unclear     4.11
on   o4-mini       forced-choice     1.53
on   o4-mini       allow-unclear     1.52
on   phi-4         forced-choice     4.10
on   phi-4         allow-unclear     4.06
""",
)
"""Shadows removed per instance, mean over both chat datasets."""

HEAD_TO_HEAD = _table(
    "app:tab:ts_race_stm",
    keys=3,
    text="""
dataset      model         mode           standard  timestamp  gcmem     winner    gap
chat-medium  deepseek-v3   forced-choice      37.5       79.2   70.8  timestamp   +8.3
chat-medium  deepseek-v3   allow-unclear      29.2       62.5   60.4  timestamp   +2.1
chat-medium  gpt-4o        forced-choice      43.8       79.2   77.1  timestamp   +2.1
chat-medium  gpt-4o        allow-unclear      45.8       62.5   68.8      gcmem   +6.2
chat-medium  gpt-4.1       forced-choice      46.8       76.6   70.2  timestamp   +6.4
chat-medium  gpt-4.1       allow-unclear      40.4       72.3   68.1  timestamp   +4.3
chat-medium  gpt-4.1-mini  forced-choice      58.3       72.9   66.7  timestamp   +6.2
chat-medium  gpt-4.1-mini  allow-unclear      52.1       72.9   62.5  timestamp  +10.4
chat-medium  gpt-5-chat    forced-choice      53.2       72.3   72.3        tie    0.0
chat-medium  gpt-5-chat    allow-unclear      53.2       68.1   70.2      gcmem   +2.1
chat-medium  o4-mini       forced-choice      45.8       68.8   58.3  timestamp  +10.4
chat-medium  o4-mini       allow-unclear      41.7       62.5   56.2  timestamp   +6.2
chat-medium  phi-4         forced-choice      58.3       85.4   83.3  timestamp   +2.1
chat-medium  phi-4         allow-unclear      39.6       66.7   68.8      gcmem   +2.1
chat-large   deepseek-v3   forced-choice      27.7       80.0   69.2  timestamp  +10.8
chat-large   deepseek-v3   allow-unclear      23.1       61.5   63.1      gcmem   +1.5
chat-large   gpt-4o        forced-choice      36.9       80.0   83.1      gcmem   +3.1
chat-large   gpt-4o        allow-unclear      33.9       47.7   58.5      gcmem  +10.8
chat-large   gpt-4.1       forced-choice      28.1       79.7   67.2  timestamp  +12.5
chat-large   gpt-4.1       allow-unclear      33.3       55.6   55.6        tie    0.0
chat-large   gpt-4.1-mini  forced-choice      36.9       75.4   55.4  timestamp  +20.0
chat-large   gpt-4.1-mini  allow-unclear      35.4       60.0   47.7  timestamp  +12.3
chat-large   gpt-5-chat    forced-choice      39.7       76.2   68.2  timestamp   +7.9
chat-large   gpt-5-chat    allow-unclear      39.1       68.8   65.6  timestamp   +3.1
chat-large   o4-mini       forced-choice      33.9       70.8   44.6  timestamp  +26.2
chat-large   o4-mini       allow-unclear      32.3       58.5   46.2  timestamp  +12.3
chat-large   phi-4         forced-choice      47.7       80.0   75.4  timestamp   +4.6
chat-large   phi-4         allow-unclear      33.9       50.8   61.5      gcmem  +10.8
""",
)
"""With STM on; the gap is the winner's lead."""

BAG_PER_MODEL = _table(
    "app:tab:bof_per_model",
    keys=2,
    text="""
model         dataset      standard  timestamp  gcmem  delta  shadows   n
deepseek-v3   chat-medium      14.6       12.5   56.2  +41.7    13.58  48
deepseek-v3   chat-large        9.2       12.3   52.3  +43.1    12.98  65
gpt-4o        chat-medium      16.7       18.8   60.4  +43.8    16.67  48
gpt-4o        chat-large        9.2        6.2   46.2  +36.9    14.72  65
gpt-4.1       chat-medium      21.7       15.2   60.9  +39.1    13.02  48
gpt-4.1       chat-large       14.1        9.4   31.2  +17.2    10.47  65
gpt-4.1-mini  chat-medium      14.6       18.8   37.5  +22.9     7.42  48
gpt-4.1-mini  chat-large        7.7        7.7   24.6  +16.9     5.14  65
gpt-5-chat    chat-medium      39.1       21.7   71.7  +32.6    13.39  48
gpt-5-chat    chat-large       17.5       11.1   44.4  +27.0    10.52  65
o4-mini       chat-medium      29.2       31.2   43.8  +14.6     7.25  48
o4-mini       chat-large        9.2       15.4   23.1  +13.9     5.17  65
phi-4         chat-medium       7.0       11.6   55.8  +48.8    14.02  48
phi-4         chat-large       17.6       19.6   33.3  +15.7    13.45  65
""",
)
"""Every model and dataset, without retrieval."""

BAG_RANKING = _table(
    "app:tab:bof_model_ranking",
    keys=1,
    text="""
model         rank  standard  gcmem  delta  shadows
deepseek-v3      1      11.9   54.3  +42.4    13.28
gpt-4o           2      12.9   53.3  +40.3    15.70
phi-4            3      12.3   44.6  +32.3    13.73
gpt-5-chat       4      28.3   58.1  +29.8    11.96
gpt-4.1          5      17.9   46.1  +28.2    11.75
gpt-4.1-mini     6      11.1   31.1  +19.9     6.28
o4-mini          7      19.2   33.4  +14.2     6.21
""",
)
"""Means of the two chat datasets."""
