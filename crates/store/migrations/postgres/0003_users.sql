-- The owner of a session and those with whom it is shared (`access`, JSON), for servers with several users.
ALTER TABLE session ADD COLUMN access text COLLATE "C";
ALTER TABLE session ADD COLUMN owner text COLLATE "C";
ALTER TABLE session ADD COLUMN team text COLLATE "C";

-- The usage of each answer in a session with an owner. `day` counts from 1970 in UTC. A row outlives its message.
CREATE TABLE usage (
    message_id text COLLATE "C" PRIMARY KEY,
    owner text COLLATE "C" NOT NULL,
    team text COLLATE "C",
    day bigint NOT NULL,
    tokens bigint NOT NULL,
    cost double precision NOT NULL
);
CREATE INDEX usage_owner_day_idx ON usage (owner, day);
CREATE INDEX usage_team_day_idx ON usage (team, day) WHERE team IS NOT NULL;
CREATE INDEX usage_day_idx ON usage (day);

-- Who did what. Rows are only added, and removed at the end when there are too many.
CREATE TABLE audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    time bigint NOT NULL,
    account text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL,
    detail text COLLATE "C" NOT NULL,
    request text COLLATE "C" NOT NULL,
    is_refusal bigint NOT NULL
);
CREATE INDEX audit_refusal_idx ON audit (is_refusal, id);
