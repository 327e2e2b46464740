-- works-with: 4
-- API keys. The secret of a key is never stored: `hash` is the SHA-256 of the whole key. Rows stay after revocation, because a
-- node that has ever had a key does not serve requests without credentials again.
create table rouse.api_keys (
  id text collate "C" primary key check (id ~ '^[0-9A-Za-z]{12}$'),
  name text collate "C" not null,
  hash bytea not null check (octet_length(hash) = 32),
  grants text[] not null,
  limits jsonb not null default '{}',
  created_by text not null,
  created_at timestamptz not null,
  expires_at timestamptz,   -- null: never
  revoked_at timestamptz,   -- null: not revoked
  last_used_day date        -- by UTC; null: never used
);

-- With this secret, nodes of the cluster sign the requests that they send each other.
create table rouse.node_secret (
  only_row boolean primary key default true check (only_row),
  secret bytea not null
);
insert into rouse.node_secret (secret)
values (decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'));
