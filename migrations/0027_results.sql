-- works-with: 4
-- What consumers report about messages: results, progress, and, if a queue keeps its whole history, completed attempts.

lock table rouse.queues, rouse.leases in access exclusive mode;

-- What the consumers of one group reported about one message. The row goes with the message.
create table rouse.results (
  partition_id bigint not null,
  seq bigint not null,
  group_id integer not null,
  progress text,                   -- JSON text, as the last report of a holder had it
  progress_at timestamptz,
  result text,                     -- JSON text, of the ack
  completed_at timestamptz,        -- the time of that ack
  primary key (partition_id, seq, group_id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

-- The option history: whether completed attempts are kept, too, not only those that failed.
alter table rouse.queues add column full_history boolean not null default false;

-- Whether the acks of a lease write attempts. Set by a pop of a queue with the whole history.
alter table rouse.leases add column recorded boolean not null default false;

-- The short path of a pop does not mark its leases, so it is not for such a queue. The rest of the condition stays as it is.
do $$
declare
  v_plain constant text := (
    select pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
    where d.adrelid = 'rouse.queues'::regclass and a.attname = 'plain');
begin
  alter table rouse.queues drop column plain;
  execute format('alter table rouse.queues add column plain boolean generated always as ((%s) and not full_history) stored', v_plain);
end $$;
