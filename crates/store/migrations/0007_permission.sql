-- The approvals that a user gave with "always". The columns of `permission` are those of the OpenCode format; what else
-- an approval is bound to stands in a table of ours.
CREATE TABLE permission (
    id text PRIMARY KEY,
    project_id text NOT NULL REFERENCES project (id) ON DELETE CASCADE,
    action text NOT NULL,
    resource text NOT NULL,
    time_created integer NOT NULL,
    time_updated integer NOT NULL
);
CREATE INDEX permission_project_idx ON permission (project_id);

-- `directory` is the root of the worktree, or the directory outside a repository. `rules` is a JSON list of the rules that
-- asked when the approval was given. An approval without a row here does not count.
CREATE TABLE permission_scope (
    id text PRIMARY KEY REFERENCES permission (id) ON DELETE CASCADE,
    directory text NOT NULL,
    rules text NOT NULL
);
