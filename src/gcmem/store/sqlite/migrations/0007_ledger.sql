-- The claims of the chunks that a detector has read, newest detector only. A chunk without claims
-- has one row without a place.
CREATE TABLE claims (
    seq INTEGER NOT NULL,
    first INTEGER,
    last INTEGER,
    detector TEXT NOT NULL,
    vector BLOB NOT NULL
);
CREATE INDEX claims_by_seq ON claims (seq);

-- Verdicts, append-only: of several on the same claims, judge and question, the last one counts.
CREATE TABLE verdicts (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    older TEXT NOT NULL,
    older_first INTEGER NOT NULL,
    older_last INTEGER NOT NULL,
    newer TEXT NOT NULL,
    newer_first INTEGER NOT NULL,
    newer_last INTEGER NOT NULL,
    judge TEXT NOT NULL,
    kind TEXT NOT NULL,
    question BLOB NOT NULL,
    score REAL NOT NULL,
    reason TEXT NOT NULL,
    recorded_at INTEGER NOT NULL
);
CREATE INDEX verdicts_by_older ON verdicts (older);
CREATE INDEX verdicts_by_newer ON verdicts (newer);

-- Which chunks a judge has read beyond the number up to which it has read everything.
CREATE TABLE judged (
    judge TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (judge, seq)
) WITHOUT ROWID;

CREATE TABLE pins (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    chunk TEXT NOT NULL,
    is_pinned INTEGER NOT NULL,
    person TEXT NOT NULL,
    recorded_at INTEGER NOT NULL
);
CREATE INDEX pins_by_chunk ON pins (chunk);

-- Conflicts between whole chunks, found at read time: judged anew, as claims.
DROP TABLE edges;
DELETE FROM meta WHERE key LIKE 'linked_up_to:%';
