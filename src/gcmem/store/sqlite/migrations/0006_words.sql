-- The words of each chunk as hashes with their counts, for lexical search.
CREATE TABLE words (
    seq INTEGER PRIMARY KEY,
    terms BLOB NOT NULL
);
-- The chunks of an older store get theirs at the first search.
INSERT INTO meta SELECT 'words_missing', '1' WHERE EXISTS (SELECT 1 FROM chunks);
