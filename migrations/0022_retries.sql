-- works-with: 4
-- When a failed message is tried again, and where it goes after its last attempt.

lock table rouse.queues, rouse.attempts in access exclusive mode;

alter table rouse.queues
  -- The option retryBackoff with all its fields. Null: the ladder in retry_backoff_ms counts.
  add column retry_backoff jsonb,
  -- The queue that gets the dead letters. Null: they are kept in rouse.dead_letters.
  add column dead_letter_to text;

-- What the last attempt of a message led to: dead, moved (to another queue) or dropped. Null: the message is tried again.
alter table rouse.attempts add column final text;
