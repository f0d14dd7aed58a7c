-- How far a chunk's source is believed. Not in the metadata, which whoever writes a chunk can set.
ALTER TABLE chunks ADD COLUMN trust INTEGER NOT NULL DEFAULT 1;
