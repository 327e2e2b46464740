-- Prints the schema as text, one fact per line, in a fixed order. migrations/schema.snapshot.txt contains the
-- result. Bodies and planner settings of functions are left out, because changing them affects no caller.
-- Roles are left out, too, because a managed database may not have them.
with tables as (
  select c.oid, c.relname, c.reloptions from pg_class c
  where c.relnamespace = 'rouse'::regnamespace and c.relkind in ('r', 'p')
),
lines (kind, name, place, line) as (
  select 0, c.relname::text, 0, format('type %s (%s)', c.relname, string_agg(
    a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' order by a.attnum))
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  where c.relnamespace = 'rouse'::regnamespace and c.relkind = 'c'
  group by c.relname
  union all
  select 1, t.relname::text, 0, format('table %s%s', t.relname, ' with (' || array_to_string(t.reloptions, ', ') || ')') from tables t
  union all
  select 1, t.relname, a.attnum, format('  column %s %s%s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
    case when a.attcollation not in (0, 'default'::regcollation) then ' collate ' || a.attcollation::regcollation end,
    case when a.attnotnull then ' not null' end,
    case when a.attidentity <> '' then ' generated always as identity' else ' default ' || pg_get_expr(d.adbin, d.adrelid) end)
  from tables t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
  left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
  union all
  select 1, t.relname, 2000 + row_number() over (partition by t.oid order by c.conname), format('  constraint %s %s', c.conname, pg_get_constraintdef(c.oid))
  from tables t join pg_constraint c on c.conrelid = t.oid and c.contype <> 'n'
  union all
  select 1, t.relname, 3000 + row_number() over (partition by t.oid order by i.relname),
    format('  index %s%s%s', case when x.indisunique then 'unique ' end, i.relname, substring(pg_get_indexdef(i.oid) from ' USING .*$'))
  from tables t join pg_index x on x.indrelid = t.oid join pg_class i on i.oid = x.indexrelid
  union all
  select 1, t.relname, 4000 + row_number() over (partition by t.oid order by g.tgname), format('  trigger %s', pg_get_triggerdef(g.oid))
  from tables t join pg_trigger g on g.tgrelid = t.oid and not g.tgisinternal
  union all
  select 2, s.relname, 0, format('sequence %s %s', s.relname, format_type(q.seqtypid, null))
  from pg_class s join pg_sequence q on q.seqrelid = s.oid
  where s.relnamespace = 'rouse'::regnamespace
    and not exists (select from pg_depend d where d.objid = s.oid and d.deptype = 'i')
  union all
  select 3, p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')', 0,
    format('function %s(%s) returns %s%s', p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
      case when p.prosecdef then ' security definer, ' || array_to_string(array(
        select c from unnest(p.proconfig) c where c like 'search_path=%'), ', ') end)
  from pg_proc p where p.pronamespace = 'rouse'::regnamespace
)
select line from lines order by kind, name collate "C", place
