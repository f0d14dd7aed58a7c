-- Conflicts that were found: the old end, and the newer chunk that contradicts it.
CREATE TABLE edges (
    older TEXT NOT NULL,
    newer TEXT NOT NULL,
    oracle TEXT NOT NULL,
    score REAL NOT NULL,
    PRIMARY KEY (older, oracle, newer)
) WITHOUT ROWID;
CREATE INDEX edges_by_newer ON edges (newer);
