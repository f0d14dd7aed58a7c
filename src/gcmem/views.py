"""The view of a question: whether it asks about the present, the past, or a change.

The rule reads English words alone, and takes every question that it does not recognize for one
about the present. A false alarm costs little: the other two views only show outdated chunks too.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from gcmem.types import Candidate, CandidateSet, Resolution, View

WHOSE = r"(?:my|our|your|his|her|its|their|the|\w+'s)"
PERSON = r"(?:[\w']+ ){1,3}?"
DID = r"(?:did|didn't|was|wasn't|were|weren't|had|hadn't)"
MONTH = "(?:january|february|march|april|may|june|july|august|september|october|november|december)"
# What people have one of at a time: the first is outdated, and the last one mostly too.
ONE_AT_A_TIME = (
    "(?:address|apartment|flat|house|home|place|landlord|room-?mate|flatmate|job|employer|company|"
    "boss|manager|team|role|position|school|doctor|dentist|car|phone|laptop|number|bank|gym|plan|"
    "partner|girlfriend|boyfriend|wife|husband|diet)(?:e?s)?"
)
# Not of "the day before": that is a time.
BEFORE = (
    r"(?<!\bdays )(?<!\bnight )(?<!\bweek )(?<!\bweeks )(?<!\bmonth )(?<!\bmonths )"
    r"(?<!\bhours )(?<!\bminutes )(?<!day )\b(?:before|prior to)\b"
)
NOT_A_STATE = "(?:chat|conversation|session|discussion|message|question|answer|thread|meeting)s?"
# The verbs that begin a state or end one.
CHANGE = (
    r"(?:(?:chang|mov|replac|renam|upgrad|relocat|migrat|retir|divorc)(?:e[ds]?|ing)|"
    r"(?:switch|start|join|end|transferr?|convert)(?:e?s|ed|ing)?|"
    r"(?:stopp?|dropp?|quitt?|swapp?|cancell?)(?:s|ed|ing)?|"
    r"beg[aiu]n(?:ning)?|bec[oa]m(?:e|es|ing)|leav(?:e|es|ing)|left|sell|sold|"
    r"(?:giv(?:e|en|ing)|gave|break|broke|split) up|(?:tak(?:e|en|ing)|took) (?:up|over)|"
    r"g[eo]t(?:ting)? (?:married|divorced|engaged|promoted|hired|fired|laid off)|"
    r"(?:go|going|went|turn|turning|turned) (?:vegan|vegetarian|remote|freelance|part-time|back))"
)
CHANGED = (
    r"(?:(?:chang|mov|replac|renam|upgrad|relocat|migrat|retir|divorc)ed|"
    r"(?:switch|start|join|end|transferr|convert|stopp|dropp|swapp|cancell?)ed|quit|"
    r"beg[au]n|became|left|sold|(?:gave|broke|split) up|took (?:up|over)|"
    r"got (?:married|divorced|engaged|promoted|hired|fired|laid off)|"
    r"(?:went|turned) (?:vegan|vegetarian|remote|freelance|part-time|back))"
)
STATE = (
    "(?:live|work|use|eat|drink|drive|wear|own|have|study|weigh|earn|pay|like|love|hate|prefer|"
    "believe|date|commute|smoke|speak|rent|keep|stay|play)"
)
AT_A_PAST_TIME = (
    rf"(?:\b(?:in|during|around|by|until|till) (?:early |late |{MONTH} )?(?:19|20)\d\d\b|"
    rf"\b(?:in|last|during|until|till) {MONTH}\b|"
    r"\blast (?:year|month|week|spring|summer|fall|autumn|winter|season|semester|quarter)\b|"
    r"\b(?:years?|months?|weeks?) (?:ago|earlier|back)\b|"
    rf"\b(?:when|while) {PERSON}(?:was|were|lived|worked|studied)\b|"
    r"\bas a (?:child|kid|student|teen|teenager|boy|girl)\b|\bgrowing up\b|\buntil recently\b|"
    r"\bin (?:my|his|her|their) (?:childhood|youth|teens|twenties|thirties)\b|"
    r"\bin (?:high school|college|university|grad school)\b)"
)

LONGEST = 600
"""How much of a long text is read, from its end: the question comes last."""
STRAIGHT_QUOTES = str.maketrans("‘’“”", "''\"\"")
# A title says nothing about the question.
TITLE = re.compile(r"\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)")
# "since I changed jobs" says why it is asked, not what is asked.
CIRCUMSTANCE = re.compile(
    rf"(?<!been )\b(?:now that|since|after|because|once) {PERSON}(?:have |has |had )?{CHANGED}\b"
)
SHORT_DID = re.compile(r"\b(when|where|what|who|why|how)'d\b")
# "what am I used to?", "is a saw used to cut it?"
ACCUSTOMED = re.compile(
    r"(?:\b(?:am|is|are|was|were|be|been|being|get|gets|got|getting)|n't|'m|'re|'s)"
    r"(?: (?!it\b|that\b)[\w']+){0,2} used to\b"
)
STILL_PRESENT = re.compile(
    r"\b(?:currently|nowadays|presently|these days|right now|at (?:the moment|present))\b"
)
SPEAKS_OF_THEN = re.compile(rf"\b{DID}\b")

CHANGES = re.compile(
    "|".join(
        (
            # When did I move? Why has she quit? In which year did we switch?
            r"\b(?:when|why|(?:what|which) (?:year|month|week|day|date|time|point))\b(?: \w+){0,2}?"
            rf" (?:{DID}|has|have)\b.*\b{CHANGE}\b",
            rf"\bwhen {PERSON}(?:first |last |finally )?{CHANGED}\b",
            # How often did I change jobs? How long ago did we move?
            r"\bhow (?:often|frequently|many times|long ago)\b.*\b(?:did|has|have|had)\b.*"
            rf"\b{CHANGE}\b",
            # Since when? How long did I live there? ("How long have I …?" asks about the present.)
            r"\bsince when\b",
            rf"\bhow long (?:did|had) {PERSON}{STATE}(?:d|ed)?\b",
            # What changed? How has it evolved? What is different?
            r"\bchanged\b",
            r"\b(?:has|have|had|did|didn't)\b(?! to\b).*\b(?:change|evolved?)\b",
            r"\bwhat(?:'s| is| was| has been) different\b",
            r"\bcompared (?:to|with) (?:before|last|when|the past|a \w+ ago)\b",
            # What did I switch from? Who replaced her?
            r"\b(?:move|switch|change|upgrade|migrate|relocate|convert|transfer) from\b",
            r"\b(?:who|what|which \w+) (?:has )?replaced\b",
            # The history of my addresses. Which cities have I lived in? How many jobs has she had?
            r"\b(?:history|timeline|evolution|progression|chronology) of\b|\bchronological",
            r"\b(?:job|work|employment|career|address|housing|relationship|salary) history\b",
            r"\bover time\b|\b(?:over|through|throughout) the years\b",
            rf"\bhow many (?:\w+ )?(?:cities|countries|{ONE_AT_A_TIME}) (?:have|has)\b",
            r"\b(?:what|which|where|who)\b.*\b(?:have|has) "
            rf"{PERSON}(?:ever )?(?:lived|worked|owned|dated|driven|rented|studied)\b",
            r"\b(?:i've|we've|they've) (?:ever )?(?:lived|worked|owned|dated|driven|rented)\b",
        )
    )
)
PAST = re.compile(
    "|".join(
        (
            # The cafe I used to go to. What did I use to eat?
            rf"\bused to\b|\bdid(?:n't| not)? {PERSON}use to\b",
            # My previous address, her ex-husband, our original plan, the old password
            rf"\bprevious\b(?! {NOT_A_STATE}\b)|\bpreviously\b|\bex\b",
            r"\bformer(?:ly)?\b|\boriginally\b|\binitially\b",
            rf"\b{WHOSE} (?:original|initial|prior|earlier) (?!{NOT_A_STATE}\b)",
            rf"\b{WHOSE} old (?!friends?\b|town\b|m[ae]n\b|lad(?:y|ies)\b|people\b|folks\b|age\b)",
            rf"\bold {ONE_AT_A_TIME}\b|\b{WHOSE} (?:first|last) {ONE_AT_A_TIME}\b",
            # In the past, at first, back then, no longer
            r"\bin the past\b(?! (?:\d+|\w+ )?(?:hour|day|week|month|year)s?\b)",
            rf"\b(?!the ){WHOSE} past (?:{ONE_AT_A_TIME}|relationships?)\b",
            r"\bat first\b(?! (?:glance|sight|light)\b)|\bin the beginning\b(?! of\b)",
            r"\bback (?:then|when|in the day)\b|\bin those days\b|\bat th(?:e|at) time\b(?! of\b)",
            r"\bno longer\b|(?:\bnot\b|n't\b).*\bany ?(?:more|longer)\b",
            r"\b(?:outdated|obsolete|superseded|out of date)\b",
            # Where did I live before? Before Google, who was my boss? Not: what do I do before bed?
            rf"\b{DID}\b.*{BEFORE}|{BEFORE}.*\b{DID}\b|{BEFORE} {PERSON}{CHANGED}\b|{BEFORE}$",
            # Which job did I leave? What have I given up?
            rf"\b(?:what|which|who)\b(?: \w+){{0,3}}? (?:did|have|has|had) {PERSON}(?:given? up|"
            r"quit|stop(?:ped)?|cancel(?:l?ed)?|abandon(?:ed)?|leave|left|sell|sold)\b",
            # Was I ever a vegetarian? Have I always lived here?
            rf"\b(?:did|was|were|have|has) {PERSON}(?:ever|always)\b",
            # Where did I live in 2019? Where was she working two years ago?
            rf"\b(?:was|were|did {PERSON}{STATE})\b.*{AT_A_PAST_TIME}",
            rf"{AT_A_PAST_TIME}.*\b(?:was|were|did {PERSON}{STATE})\b",
        )
    )
)


def view_of(question: str, view: View = "auto") -> View:
    """Returns the view of a question: the given one, or for `auto` what its words ask about."""
    if view != "auto":
        return view
    words = _words_that_count(question)
    if CHANGES.search(words):
        return "changes"
    if STILL_PRESENT.search(words) and not SPEAKS_OF_THEN.search(words):
        return "current"
    return "past" if PAST.search(words) else "current"


def _words_that_count(question: str) -> str:
    words = TITLE.sub(" ", question[-LONGEST:].casefold().translate(STRAIGHT_QUOTES))
    words = SHORT_DID.sub(r"\1 did", " ".join(words.split()).rstrip(" ?!."))
    return ACCUSTOMED.sub(" ", CIRCUMSTANCE.sub(" ", words))


def seen(
    candidates: CandidateSet, resolution: Resolution, *, view: View, k: int
) -> tuple[Candidate, ...]:
    """Returns the k candidates that a view shows.

    `current` shows what still holds. `past` and `changes` show the k most relevant candidates,
    outdated or not, with all of their sentences; `changes` puts the oldest first.
    """
    if view == "current":
        return resolution.kept[:k]
    found = candidates.items[:k]
    return tuple(sorted(found, key=_by_time)) if view == "changes" else found


def _by_time(item: Candidate) -> tuple[datetime, int]:
    return item.chunk.at or datetime.min.replace(tzinfo=UTC), item.chunk.seq or 0


def unremoved(resolution: Resolution) -> tuple[str, ...]:
    """Returns the ids of shadows that were reported only: their oracle may not remove them."""
    whole = {item.chunk.id for item in resolution.kept if not item.struck}
    return tuple(
        dict.fromkeys(
            shadow.candidate.chunk.id
            for shadow in resolution.shadows
            if shadow.candidate.chunk.id in whole
        )
    )
