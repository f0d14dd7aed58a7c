-- What was erased, so that an index beside the log drops it.
CREATE TABLE gcmem_tombstones (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    seq bigint NOT NULL
);

-- One kind of score per row. So far, the kind was part of the names.
CREATE TABLE gcmem_scores (
    first text NOT NULL,
    second text NOT NULL,
    kind text NOT NULL,
    scorer text NOT NULL,
    question bytea NOT NULL,
    score double precision NOT NULL,
    PRIMARY KEY (first, second, kind, scorer, question)
);
CREATE INDEX gcmem_scores_by_second ON gcmem_scores (second);
INSERT INTO gcmem_scores
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
FROM gcmem_verdicts;
DROP TABLE gcmem_verdicts;

-- Tells an index beside the log whose chunks it has.
INSERT INTO gcmem_meta VALUES ('log_id', replace(gen_random_uuid()::text, '-', ''));
