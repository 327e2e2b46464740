import {
  deadLetterGroups,
  deadLetters,
  figuresOf,
  figuresOfMatching,
  followMessages,
  idleGroups,
  listSchedules,
  queuesWithGroup,
  stats,
  statsPage,
  traceNames,
  tracesByName,
  tracesOfMessage,
} from '@rouse/storage'
import type { Measure } from '../support/measure.ts'
import { leasesIn, lettersIn, type Size } from '../support/skewed-database.ts'

const start = { partitionId: '0', seq: '0' }

/** Leases have no index by group, because it would slow down every pop: see functions/inspect/stats.sql. */
const leasesRead = {
  why: 'it reads all leases once',
  pagesMax: (size: Size) => 2_000 + leasesIn(size) / 5,
}

const figuresRead = {
  why: 'it reads all leases once; before the first ANALYZE its plan varies, 2,800 to 5,100 pages',
  pagesMax: (size: Size) => leasesRead.pagesMax(size) + 5_000,
}

const newestEvents = { before: undefined, from: undefined, to: undefined, offset: 0, limit: 20 }

export const lists: readonly Measure[] = [
  {
    name: 'a page of a hundred queues',
    call: (probe) => statsPage(probe, { after: 'q00050', limit: 100 }),
    grows: {
      why: 'it reads all leases once, and before the first ANALYZE other tables as well',
      pagesMax: (size) => 2_000 + leasesIn(size) / 5 + lettersIn(size) / 10,
    },
  },
  { name: 'stats of a small queue', call: (probe) => stats(probe, 'q00070'), grows: leasesRead },
  {
    name: 'stats of the hot queue',
    call: (probe) => stats(probe, 'hot'),
    grows: {
      why: 'it counts its letters, retries and scheduled messages',
      pagesMax: (size) => 1_000 + leasesIn(size) / 5 + size.letters,
    },
  },
  {
    name: 'messages of the hot queue since a moment',
    call: (probe) =>
      followMessages(
        probe,
        { queue: 'hot', partition: undefined, limit: 100 },
        { ...start, micros: String(Date.now() * 1_000) },
      ),
  },
  {
    name: 'messages of a small queue since a moment',
    call: (probe) =>
      followMessages(
        probe,
        { queue: 'q00070', partition: undefined, limit: 100 },
        { ...start, micros: String((Date.now() - 600_000) * 1_000) },
      ),
  },
  {
    name: 'a page of letters of the hot queue',
    call: (probe) => deadLetters(probe, { queue: 'hot', limit: 20 }),
    grows: { why: 'it counts 10,000 letters beyond the page', pagesMax: () => 10_020 * 3 },
  },
  {
    name: 'letters of a small queue',
    call: (probe) => deadLetters(probe, { queue: 'q00070', limit: 20 }),
  },
  {
    name: 'letters of a partition',
    call: (probe) => deadLetters(probe, { queue: 'cold', partition: 'c7', limit: 20 }),
  },
  {
    name: 'letters of all queues',
    call: (probe) => deadLetters(probe, { limit: 20 }),
    grows: { why: 'it counts 10,000 letters beyond the page', pagesMax: () => 10_020 * 3 },
  },
  {
    name: 'errors of a small queue',
    call: (probe) => deadLetterGroups(probe, { queue: 'q00070', group: undefined }, 20),
  },
  {
    name: 'errors of all queues',
    call: (probe) => deadLetterGroups(probe, { queue: undefined, group: undefined }, 20),
    grows: { why: 'it counts all letters', pagesMax: (size) => 500 + lettersIn(size) },
  },
  {
    name: 'the figures of a page of a hundred queues',
    call: (probe) => figuresOfMatching(probe, { after: 'q00100', limit: 100, search: 'q' }),
    grows: figuresRead,
  },
  {
    name: 'the figures of a page of a hundred queues with a prefix',
    call: (probe) =>
      figuresOfMatching(probe, {
        after: 'q00100',
        limit: 100,
        visible: { names: ['hot'], prefixes: ['q0'] },
      }),
    grows: figuresRead,
  },
  {
    name: 'the figures of a queue',
    call: (probe) => figuresOf(probe, 'q00070'),
    grows: leasesRead,
  },
  {
    name: 'a page of schedules',
    call: (probe) => listSchedules(probe, { after: 's00050', limit: 20 }),
  },
  {
    name: 'events of a message',
    call: (probe, { partitions }) =>
      tracesOfMessage(probe, partitions.q00070, `${partitions.q00070}-1`, 20),
  },
  {
    name: 'events by name',
    call: (probe) => tracesByName(probe, { name: 'name7', ...newestEvents }),
    grows: {
      why: 'it reads all events of the name, as their index has no order',
      pagesMax: (size) => 300 + (size.traces / 100) * 10,
    },
  },
  {
    name: 'the names of events',
    call: (probe) => traceNames(probe, { limit: 20, offset: 0 }),
    grows: { why: 'it counts all events', pagesMax: (size) => 100 + size.traces / 20 },
  },
  {
    name: 'idle groups',
    call: (probe) => idleGroups(probe, { limit: 20, idleGroupMs: 1_209_600_000 }),
  },
  {
    name: 'queues that have a group of a name',
    call: (probe) => queuesWithGroup(probe, 'abandoned'),
    grows: {
      why: 'it reads all groups, when one is deleted in all queues',
      pagesMax: (size) => 100 + size.queues / 5,
    },
  },
]
