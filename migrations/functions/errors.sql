-- Raises an error of Rouse. SQLSTATEs: RS001 retry the whole call, RS400 bad input, RS404 not found, RS409
-- conflict (a lease is lost), RS429 queue full. The detail is JSON: the code, and the item or field if known.
-- Parameters: SQLSTATE, code from the error registry, message for people, further fields of the detail.
-- Result: never returns. Locks: none.
create or replace function rouse.raise(p_state text, p_code text, p_message text, p_detail jsonb default '{}')
returns void
language plpgsql
as $$
begin
  raise exception using errcode = p_state, message = p_message,
    detail = (jsonb_build_object('code', p_code) || p_detail)::text;
end $$;

-- Refuses a name that is empty, longer than 255 bytes, `.` or `..`, or that contains a control character.
-- Parameters: the kind of name (for the error), the name, its 1-based position in the call. Result: nothing.
-- Locks: none.
create or replace function rouse.check_name(p_what text, p_name text, p_item integer default null) returns void
language plpgsql immutable
as $$
begin
  if p_name is null or octet_length(p_name) not between 1 and 255 or p_name in ('.', '..')
     or p_name ~ '[\u0001-\u001f\u007f-\u009f]' then
    perform rouse.raise('RS400', 'invalid_name',
      format('%s must be 1 to 255 bytes without control characters, and neither "." nor ".."', p_what),
      jsonb_strip_nulls(jsonb_build_object('field', p_what, 'item', p_item)));
  end if;
end $$;
