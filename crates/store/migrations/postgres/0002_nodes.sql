-- What a server says about itself, as JSON: its name, address, directories and load. NULL for other processes.
ALTER TABLE store_node ADD COLUMN member text COLLATE "C";

-- The name of the server that last owned the session.
ALTER TABLE event_sequence ADD COLUMN node text COLLATE "C";
