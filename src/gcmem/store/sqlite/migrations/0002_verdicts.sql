-- What an oracle said of two chunks, for a question (its hash; empty for an oracle that ignores it).
CREATE TABLE verdicts (
    older TEXT NOT NULL,
    newer TEXT NOT NULL,
    oracle TEXT NOT NULL,
    question BLOB NOT NULL,
    score REAL NOT NULL,
    PRIMARY KEY (older, newer, oracle, question)
) WITHOUT ROWID;
CREATE INDEX verdicts_by_newer ON verdicts (newer);
