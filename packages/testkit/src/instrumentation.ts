// Adds barriers and a settable clock to the functions of a test database. Production functions contain none
// of this: there a barrier is a comment, and `rouse.now()` reads the real clock.
import type pg from 'pg'

/** The first half of the advisory lock's key. The second half is the hash of the barrier's name. */
export const barrierLockSpace = 42

const barrierLine = /^([ \t]*)-- barrier: ([a-z0-9-]+)[ \t]*$/gm

/** Turns each `-- barrier: name` line into a call that waits while the barrier is armed. */
export function activateBarriers(_file: string, sql: string): string {
  return sql.replace(barrierLine, (_line, indent, name) => {
    return `${indent}perform rouse_test.barrier('${name}');`
  })
}

/**
 * Must run before the functions are applied, because they call barriers, and PostgreSQL checks that every
 * called function exists.
 */
export async function createBarriers(client: pg.ClientBase | pg.Pool): Promise<void> {
  await client.query(`
    create schema rouse_test;
    -- An unarmed barrier costs only one try of the lock. A wait at an armed barrier has no lock timeout,
    -- because a test may hold the barrier for any time.
    create function rouse_test.barrier(name text) returns void language plpgsql set lock_timeout = 0 as $$
    begin
      if not pg_try_advisory_lock_shared(${barrierLockSpace}, hashtext(name)) then
        perform pg_advisory_lock_shared(${barrierLockSpace}, hashtext(name));
      end if;
      perform pg_advisory_unlock_shared(${barrierLockSpace}, hashtext(name));
    end
    $$;
  `)
}

/** Replaces the clock of a migrated database, if `rouse.now()` exists. */
export async function replaceClock(client: pg.ClientBase | pg.Pool): Promise<void> {
  await client.query(`
    create table rouse_test.clock (
      only_row bool primary key default true check (only_row),
      frozen_at timestamptz,
      offset_ms double precision not null default 0
    );
    insert into rouse_test.clock default values;
  `)
  const { rows } = await client.query(`select to_regprocedure('rouse.now()') is not null as found`)
  if (rows[0].found !== true) return
  await client.query(`
    create or replace function rouse.now() returns timestamptz language sql volatile as $$
      select coalesce(frozen_at, clock_timestamp() + offset_ms * interval '1 millisecond')
      from rouse_test.clock
    $$;
  `)
}
