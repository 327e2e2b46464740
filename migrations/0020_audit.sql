-- works-with: 4
-- The audit log: who changed the cluster, and who was refused. Nodes only insert; rouse.prune_audit removes old rows.
create table rouse.audit (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  node text collate "C" not null,
  principal text collate "C" not null,
  key_id text collate "C",      -- null: not an API key
  address text collate "C",     -- of the client, as the node sees it; null: not over HTTP
  verb text collate "C" not null,
  target text collate "C" not null,
  outcome text collate "C" not null check (outcome in ('done', 'refused', 'failed')),
  request_id text collate "C",
  detail jsonb not null default '{}'
);
create index audit_at on rouse.audit (at);
