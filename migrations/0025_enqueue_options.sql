-- works-with: 4
-- rouse.enqueue gets more parameters. PostgreSQL cannot add parameters to a function, and views and functions with SQL-standard
-- bodies may depend on those of release 0.1.0, so these keep existing under the name enqueue_v1. Until the functions of this
-- release are created, the new ones call them: producers work in between. Roles keep their grants.
do $$
declare
  v record;
  v_old oid;
  v_role regrole;
begin
  for v in
    select * from (values ('text', 'json'), ('json', 'json'), ('jsonb', 'jsonb')) t(payload, headers)
  loop
    v_old := to_regprocedure(format('rouse.enqueue(text, %s, text, interval, timestamptz, text, %s, text)', v.payload, v.headers));
    continue when v_old is null;
    execute format('alter function %s rename to enqueue_v1', v_old::regprocedure);
    execute format($create$
      create function rouse.enqueue(
        queue text, payload %1$s, partition text default null, delay interval default null, run_at timestamptz default null,
        dedupe_key text default null, headers %2$s default null, trace_id text default null, priority integer default 0,
        retry_limit integer default null, retry_backoff_ms bigint[] default null, ttl_ms bigint default null, "unique" jsonb default null,
        transaction_id text default null
      ) returns uuid
      language plpgsql security definer
      set search_path = pg_catalog, pg_temp
      as $body$
      begin
        if priority <> 0 or retry_limit is not null or retry_backoff_ms is not null or ttl_ms is not null or "unique" is not null then
          raise exception using errcode = 'RS001', message = 'options of messages are available when the upgrade has ended';
        end if;
        return rouse.enqueue_v1(queue, payload, coalesce(partition, 'Default'), delay, run_at, coalesce(dedupe_key, transaction_id), headers, trace_id);
      end $body$
      $create$, v.payload, v.headers);
    v_old := to_regprocedure(format('rouse.enqueue_v1(text, %s, text, interval, timestamptz, text, %s, text)', v.payload, v.headers));
    execute format('revoke execute on function rouse.enqueue(text, %1$s, text, interval, timestamptz, text, %2$s, text, integer, '
      'integer, bigint[], bigint, jsonb, text) from public', v.payload, v.headers);
    for v_role in
      select a.grantee::regrole from pg_proc p, aclexplode(p.proacl) a where p.oid = v_old and a.grantee not in (0, p.proowner)
    loop
      execute format('grant execute on function rouse.enqueue(text, %1$s, text, interval, timestamptz, text, %2$s, text, integer, '
        'integer, bigint[], bigint, jsonb, text) to %3$s', v.payload, v.headers, v_role);
    end loop;
  end loop;
end $$;
