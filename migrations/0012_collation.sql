-- works-with: 1
-- Names and keys sort by their bytes. In the collation of the database an upgrade of the C library or of ICU may change the order
-- of texts, and unique indexes built before then find no longer what they hold. `=` finds the same rows in either.
--
-- The tables are not rewritten, but their indexes on these columns are built again, and pushes, pops and acks wait meanwhile. On two
-- busy cores that took 2.7 s for a million keys or partitions and 6.2 s for a million scheduled messages. PostgreSQL refuses it
-- where a view uses such a column: drop the view first.

-- All tables at once or none: to wait for one while another is locked could deadlock with a node at work, and a lock that waits
-- holds up all calls behind it. So each wait is shorter than deadlock_timeout, and traffic passes between the attempts. Transactions
-- of users hold `scheduled` as long as they like: it comes first, so that pushes and pops do not wait for them.
do $$
declare
  v_attempts_left integer := 20;
begin
  perform set_config('lock_timeout', '200ms', true);
  loop
    begin
      lock table rouse.scheduled, rouse.queues, rouse.groups, rouse.partitions, rouse.dedup, rouse.schedules, rouse.nodes,
        rouse.chores, rouse.traces in access exclusive mode;
      exit;
    exception when lock_not_available or deadlock_detected then
      v_attempts_left := v_attempts_left - 1;
      if v_attempts_left = 0 then
        raise;
      end if;
    end;
    perform pg_sleep(0.3);
  end loop;
end $$;

set local maintenance_work_mem = '256MB';
alter table rouse.queues
  alter column name type text collate "C", alter column namespace type text collate "C", alter column task type text collate "C";
alter table rouse.groups alter column name type text collate "C";
alter table rouse.partitions alter column name type text collate "C";
alter table rouse.scheduled alter column queue type text collate "C", alter column partition type text collate "C";
alter table rouse.dedup alter column key type text collate "C";
alter table rouse.schedules alter column name type text collate "C";
alter table rouse.nodes alter column id type text collate "C";
alter table rouse.chores alter column name type text collate "C";
alter table rouse.traces alter column transaction_id type text collate "C", alter column names type text[] collate "C";
