-- The words of each chunk as hashes with their counts, for lexical search.
CREATE TABLE gcmem_words (
    seq bigint PRIMARY KEY,
    terms integer[] NOT NULL,
    counts integer[] NOT NULL,
    length integer NOT NULL
);
CREATE INDEX gcmem_words_by_term ON gcmem_words USING gin (terms);
-- The chunks of an older store get theirs at the first search.
INSERT INTO gcmem_meta SELECT 'words_missing', '1' WHERE EXISTS (SELECT FROM gcmem_chunks);
