-- Lists the times at which something falls due within the horizon. A node calls this once a second and sets
-- its timers accordingly. So an idle node costs one cheap query a second, and work that falls due in between
-- is done on time.
-- Parameters: the horizon in ms, the maximum number of rows to read of each kind.
-- Result: one row, times in ms since 1970: the database's time; the time up to which the lists are complete;
--   when leases expire; when scheduled messages, blocked lanes, blocked groups and redeliveries are due (now,
--   if ack_in freed a lane); when schedules are due; when jobs in rouse.chores are due; and whether any queue has a window
--   buffer. The end of a window buffer is known only after a pop.
-- Locks: none.
create or replace function rouse.due_times(p_horizon_ms integer, p_rows integer default 200)
returns table (
  now_ms double precision, complete_until double precision, reap double precision[], promote double precision[],
  cron double precision[], retain double precision[], has_windows boolean
)
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  v_now constant timestamptz := rouse.now();
  v_until constant timestamptz := v_now + p_horizon_ms * interval '1 millisecond';
  v_freed timestamptz;
begin
  select v_now into v_freed from rouse.freed limit 1;
  return query
  -- Only one overdue row of each kind is read: overdue rows may stay locked for long, and must not crowd out
  -- later ones.
  with due as (
    (select 'reap' as kind, s.expires_at as at from rouse.leases s where s.expires_at <= v_now order by s.expires_at limit 1)
    union all
    (select 'reap', s.expires_at from rouse.leases s where s.expires_at > v_now and s.expires_at <= v_until order by s.expires_at limit p_rows)
    union all
    (select 'scheduled', s.due_at from rouse.scheduled s where s.due_at <= v_now order by s.due_at limit 1)
    union all
    (select 'scheduled', s.due_at from rouse.scheduled s where s.due_at > v_now and s.due_at <= v_until order by s.due_at limit p_rows)
    union all
    (select 'blocked', l.blocked_until from rouse.lanes l where l.blocked_until <= v_now order by l.blocked_until limit 1)
    union all
    (select 'blocked', l.blocked_until from rouse.lanes l
     where l.blocked_until > v_now and l.blocked_until <= v_until order by l.blocked_until limit p_rows)
    union all
    (select 'groups', g.blocked_until from rouse.groups g where g.blocked_until <= v_now order by g.blocked_until limit 1)
    union all
    (select 'groups', g.blocked_until from rouse.groups g
     where g.blocked_until > v_now and g.blocked_until <= v_until order by g.blocked_until limit p_rows)
    union all
    (select 'again', r.due_at from rouse.redeliveries r where not r.announced and r.due_at <= v_now order by r.due_at limit 1)
    union all
    (select 'again', r.due_at from rouse.redeliveries r
     where not r.announced and r.due_at > v_now and r.due_at <= v_until order by r.due_at limit p_rows)
    union all
    (select 'freed', v_freed where v_freed is not null)
    union all
    (select 'cron', s.next_at from rouse.schedules s where s.next_at <= v_now order by s.next_at limit 1)
    union all
    (select 'cron', s.next_at from rouse.schedules s where s.next_at > v_now and s.next_at <= v_until order by s.next_at limit p_rows)
    union all
    (select 'retain', c.next_at from rouse.chores c where c.next_at <= v_until)
  ), ends as (
    select min(k.last_at) as at from (select max(d.at) as last_at from due d where d.at > v_now group by d.kind having count(*) >= p_rows) k
  )
  select rouse.epoch_ms(v_now), rouse.epoch_ms(coalesce((select e.at from ends e), v_until)),
    array(select distinct rouse.epoch_ms(d.at) from due d where d.kind = 'reap'),
    array(select distinct rouse.epoch_ms(d.at) from due d where d.kind in ('scheduled', 'blocked', 'groups', 'again', 'freed')),
    array(select distinct rouse.epoch_ms(d.at) from due d where d.kind = 'cron'),
    array(select distinct rouse.epoch_ms(d.at) from due d where d.kind = 'retain'),
    exists (select from rouse.queues q where q.window_ms > 0);
end $$;

-- The first whole millisecond since 1970 that is not before a time.
-- Parameters: the time. Result: milliseconds. Locks: none.
create or replace function rouse.epoch_ms(p_at timestamptz) returns double precision
language sql immutable parallel safe
as $$ select ceil(extract(epoch from p_at) * 1000)::double precision $$;
