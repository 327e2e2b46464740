-- The cluster's own bookkeeping, all off the hot path.

create sequence rouse.incarnations;

create table rouse.nodes (
  id text primary key,
  incarnation bigint not null,
  http_url text,
  gossip_address text,
  version text,
  started_at timestamptz not null,
  last_seen_at timestamptz not null
) with (fillfactor = 50);

create table rouse.schedules (
  id bigint generated always as identity primary key,
  name text not null unique,
  queue text not null,
  partition text not null default 'Default',
  cron text not null,
  time_zone text not null default 'UTC',
  payload text not null default 'null',
  headers text,
  catch_up text not null default 'last' check (catch_up in ('none', 'last', 'all')),
  paused boolean not null default false,
  next_at timestamptz,
  last_at timestamptz,
  created_at timestamptz not null
);

create table rouse.traces (
  id bigint generated always as identity primary key,
  partition_id bigint not null,
  transaction_id text not null,
  consumer_group text,
  names text[] not null default '{}',
  event_type text not null default 'info',
  data text not null,
  created_at timestamptz not null
);
create index traces_by_message on rouse.traces (partition_id, transaction_id);
create index traces_by_name on rouse.traces using gin (names);
create index traces_by_time on rouse.traces (created_at);

create table rouse.redrives (
  id uuid primary key,
  queue text not null,
  criteria jsonb not null,
  rate_per_second integer,
  state text not null check (state in ('running', 'done', 'cancelled')),
  moved bigint not null default 0,
  total bigint not null,
  position bigint not null default 0,
  started_at timestamptz not null,
  updated_at timestamptz not null
);

-- Producers' role: may enqueue and ack inside their own transactions, nothing else. Creating a role needs a
-- privilege that a managed database may withhold; then an administrator creates it and grants are re-applied.
do $$
begin
  if not exists (select from pg_roles where rolname = 'rouse_producer') then
    create role rouse_producer nologin;
  end if;
exception
  when insufficient_privilege then
    raise notice 'rouse_producer was not created: this login may not create roles';
  when unique_violation or duplicate_object then
    null; -- another database of this server created it meanwhile
end $$;
