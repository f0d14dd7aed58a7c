CREATE TABLE gcmem_meta (
    key text PRIMARY KEY,
    value text NOT NULL
);

-- One row. Whoever appends holds its lock until the commit, so numbers become visible in order.
CREATE TABLE gcmem_sequence (
    last_seq bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO gcmem_sequence VALUES (0);

-- The log. The metadata is kept to the letter, and once more in the form that filters can search.
CREATE TABLE gcmem_chunks (
    seq bigint PRIMARY KEY,
    id text NOT NULL UNIQUE,
    user_id text,
    agent_id text,
    run_id text,
    at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL,
    speaker text NOT NULL,
    session text,
    text text NOT NULL,
    metadata text NOT NULL,
    trust integer NOT NULL,
    facets jsonb NOT NULL GENERATED ALWAYS AS (metadata::jsonb) STORED
);
CREATE INDEX gcmem_chunks_by_time ON gcmem_chunks (at, seq);
CREATE INDEX gcmem_chunks_by_user ON gcmem_chunks (user_id, at, seq);
CREATE INDEX gcmem_chunks_by_agent ON gcmem_chunks (agent_id, at, seq) WHERE agent_id IS NOT NULL;
CREATE INDEX gcmem_chunks_by_run ON gcmem_chunks (run_id, at, seq) WHERE run_id IS NOT NULL;
CREATE INDEX gcmem_chunks_by_facet ON gcmem_chunks USING gin (facets jsonb_path_ops);

-- Apart from the chunks, so that text scans stay small and re-embedding can swap the table.
-- Without a dimension: that is the encoder's, and the table is made before one is known.
CREATE TABLE gcmem_vectors (
    seq bigint PRIMARY KEY,
    vector vector NOT NULL
);
CREATE TABLE gcmem_vectors_next (LIKE gcmem_vectors INCLUDING ALL);

-- What an oracle said of two chunks, for a question (its hash).
CREATE TABLE gcmem_verdicts (
    older text NOT NULL,
    newer text NOT NULL,
    oracle text NOT NULL,
    question bytea NOT NULL,
    score double precision NOT NULL,
    PRIMARY KEY (older, newer, oracle, question)
);
CREATE INDEX gcmem_verdicts_by_newer ON gcmem_verdicts (newer);

-- Conflicts that were found: the old end, and the newer chunk that contradicts it.
CREATE TABLE gcmem_edges (
    older text NOT NULL,
    newer text NOT NULL,
    oracle text NOT NULL,
    score double precision NOT NULL,
    PRIMARY KEY (older, oracle, newer)
);
CREATE INDEX gcmem_edges_by_newer ON gcmem_edges (newer);
