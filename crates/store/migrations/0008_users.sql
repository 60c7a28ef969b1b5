-- The owner of a session and those with whom it is shared (`access`, JSON), for servers with several users.
ALTER TABLE session ADD COLUMN access text;
ALTER TABLE session ADD COLUMN owner text;
ALTER TABLE session ADD COLUMN team text;

-- The usage of each answer in a session with an owner. `day` counts from 1970 in UTC. A row outlives its message.
CREATE TABLE usage (
    message_id text PRIMARY KEY,
    owner text NOT NULL,
    team text,
    day integer NOT NULL,
    tokens integer NOT NULL,
    cost real NOT NULL
);
CREATE INDEX usage_owner_day_idx ON usage (owner, day);
CREATE INDEX usage_team_day_idx ON usage (team, day) WHERE team IS NOT NULL;
CREATE INDEX usage_day_idx ON usage (day);

-- Who did what. Rows are only added, and removed at the end when there are too many.
CREATE TABLE audit (
    id integer PRIMARY KEY AUTOINCREMENT,
    time integer NOT NULL,
    account text NOT NULL,
    action text NOT NULL,
    target text NOT NULL,
    detail text NOT NULL,
    request text NOT NULL,
    is_refusal integer NOT NULL
);
CREATE INDEX audit_refusal_idx ON audit (is_refusal, id);
