-- One kind of score per row. So far, the kind was part of the names.
CREATE TABLE scores (
    first TEXT NOT NULL,
    second TEXT NOT NULL,
    kind TEXT NOT NULL,
    scorer TEXT NOT NULL,
    question BLOB NOT NULL,
    score REAL NOT NULL,
    PRIMARY KEY (first, second, kind, scorer, question)
) WITHOUT ROWID;
CREATE INDEX scores_by_second ON scores (second);
INSERT INTO scores
SELECT
    older,
    CASE WHEN newer LIKE 'option %' THEN substr(newer, 8) ELSE newer END,
    CASE
        WHEN newer LIKE 'option %' THEN 'stance'
        WHEN oracle LIKE '% at a glance' THEN 'glance'
        ELSE 'pair'
    END,
    replace(oracle, ' at a glance', ''),
    question,
    score
FROM verdicts;
DROP TABLE verdicts;
-- Always there, so that erasing a chunk need not ask whether a rebuild is under way.
CREATE TABLE IF NOT EXISTS vectors_next (
    seq INTEGER PRIMARY KEY,
    vector BLOB NOT NULL
);
-- Tells an index beside the log whose chunks it has.
INSERT INTO meta VALUES ('log_id', lower(hex(randomblob(16))));
