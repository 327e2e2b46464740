create table rouse.counter (value int not null);
insert into rouse.counter values (0);
