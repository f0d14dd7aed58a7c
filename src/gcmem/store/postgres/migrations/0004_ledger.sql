-- The claims of each chunk that a detector has read, newest detector only; a chunk may have none.
-- One row per chunk, so that claims are replaced at once. Vectors are float16, little-endian.
CREATE TABLE gcmem_claims (
    seq bigint PRIMARY KEY,
    detector text NOT NULL,
    firsts integer[] NOT NULL,
    lasts integer[] NOT NULL,
    vectors bytea[] NOT NULL
);

-- Verdicts, append-only: of several on the same claims, judge and question, the last one counts.
CREATE TABLE gcmem_verdicts (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    older text NOT NULL,
    older_first integer NOT NULL,
    older_last integer NOT NULL,
    newer text NOT NULL,
    newer_first integer NOT NULL,
    newer_last integer NOT NULL,
    judge text NOT NULL,
    kind text NOT NULL,
    question bytea NOT NULL,
    score double precision NOT NULL,
    reason text NOT NULL,
    recorded_at timestamptz NOT NULL
);
CREATE INDEX gcmem_verdicts_by_older ON gcmem_verdicts (older);
CREATE INDEX gcmem_verdicts_by_newer ON gcmem_verdicts (newer);

-- Up to which number each judge has read everything. Whoever records for a judge locks its row
-- until the commit, and takes the next n.
CREATE TABLE gcmem_judges (
    judge text PRIMARY KEY,
    up_to bigint NOT NULL DEFAULT 0,
    n bigint GENERATED ALWAYS AS IDENTITY
);

-- Which chunks a judge has read beyond that number.
CREATE TABLE gcmem_judged (
    judge text NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (judge, seq)
);

-- One row: who may judge ahead, and how long.
CREATE TABLE gcmem_lease (
    holder text NOT NULL,
    until timestamptz NOT NULL
);
INSERT INTO gcmem_lease VALUES ('', '-infinity');

CREATE TABLE gcmem_pins (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    chunk text NOT NULL,
    is_pinned boolean NOT NULL,
    person text NOT NULL,
    recorded_at timestamptz NOT NULL
);
CREATE INDEX gcmem_pins_by_chunk ON gcmem_pins (chunk);

-- Conflicts between whole chunks, found at read time: judged anew, as claims.
DROP TABLE gcmem_edges;
DELETE FROM gcmem_meta WHERE key LIKE 'linked_up_to:%';
