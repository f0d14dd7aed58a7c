-- The log. AUTOINCREMENT: a sequence number is never used twice, also after a deletion.
CREATE TABLE chunks (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    user_id TEXT,
    agent_id TEXT,
    run_id TEXT,
    at INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    speaker TEXT NOT NULL,
    session TEXT,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL
);
CREATE INDEX chunks_by_time ON chunks (at, seq);
CREATE INDEX chunks_by_user ON chunks (user_id, at, seq);
CREATE INDEX chunks_by_agent ON chunks (agent_id, at, seq) WHERE agent_id IS NOT NULL;
CREATE INDEX chunks_by_run ON chunks (run_id, at, seq) WHERE run_id IS NOT NULL;

-- Apart from the chunks, so that text scans stay small and re-embedding can swap the table.
CREATE TABLE vectors (
    seq INTEGER PRIMARY KEY,
    vector BLOB NOT NULL
);

-- What was erased, so that other processes drop it from their index.
CREATE TABLE tombstones (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    seq INTEGER NOT NULL
);

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
