-- enqueue as it was in release 0.1.0, with a payload of type text. Views and functions with SQL-standard bodies that were created then call
-- it; all other callers get enqueue.
-- Parameters and result: as enqueue. Locks: none.
create or replace function rouse.enqueue_v1(
  queue text, payload text, partition text default null, delay interval default null, run_at timestamptz default null,
  transaction_id text default null, headers json default null, trace_id text default null
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return rouse.enqueue(queue, payload, partition, delay, run_at, transaction_id, headers, trace_id);
end $$;

-- The same with a payload of type json.
-- Parameters and result: as enqueue. Locks: none.
create or replace function rouse.enqueue_v1(
  queue text, payload json, partition text default null, delay interval default null, run_at timestamptz default null,
  transaction_id text default null, headers json default null, trace_id text default null
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return rouse.enqueue(queue, payload, partition, delay, run_at, transaction_id, headers, trace_id);
end $$;

-- The same with a payload of type jsonb.
-- Parameters and result: as enqueue. Locks: none.
create or replace function rouse.enqueue_v1(
  queue text, payload jsonb, partition text default null, delay interval default null, run_at timestamptz default null,
  transaction_id text default null, headers jsonb default null, trace_id text default null
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return rouse.enqueue(queue, payload, partition, delay, run_at, transaction_id, headers, trace_id);
end $$;

comment on function rouse.enqueue_v1(text, text, text, interval, timestamptz, text, json, text) is
  'enqueue of release 0.1.0, for views and SQL-standard functions that were created then. Call rouse.enqueue.';

comment on function rouse.enqueue_v1(text, json, text, interval, timestamptz, text, json, text) is
  'enqueue of release 0.1.0, for views and SQL-standard functions that were created then. Call rouse.enqueue.';

comment on function rouse.enqueue_v1(text, jsonb, text, interval, timestamptz, text, jsonb, text) is
  'enqueue of release 0.1.0, for views and SQL-standard functions that were created then. Call rouse.enqueue.';
