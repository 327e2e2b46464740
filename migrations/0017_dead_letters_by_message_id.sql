-- works-with: 4
-- Finds a dead letter by the id of its message after retention has removed the message from the log.
create index dead_letters_by_message_id on rouse.dead_letters (message_id);
