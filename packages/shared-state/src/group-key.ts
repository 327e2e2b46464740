// The key of a wait group:
//
//   queue/partition/group      one partition          orders/eu-1/billing
//   queue/*/group              any partition          orders/*/billing
//   namespace/n/task/t/group   any queue of those     namespace/shop/task/*/billing
//
// `/`, `*` and `%` inside a name are percent-encoded, so no two wait groups share a key, and it stays
// readable. The part before the consumer group is the selector: all groups of a selector wake together.

import type { WaitGroup, WakeHint } from '@rouse/protocol'

export type GroupKey = string

/**
 * The number of messages a hint reports; undefined: unknown. A hint for a single consumer group reports a
 * freed lane, whose redelivered messages are not counted.
 */
export function countOf({ count, group }: WakeHint): number | undefined {
  const isForAll = group === undefined || group === null
  return isForAll && count !== undefined && count > 0 ? count : undefined
}

export function groupKey(description: WaitGroup): GroupKey {
  return `${selectorOf(description)}/${encode(description.group)}`
}

export function selectorOf({ source }: WaitGroup): string {
  if ('queue' in source) return queueSelector(source.queue, source.partition)
  return sharedSelector(source.namespace, source.task)
}

export function queueSelector(queue: string, partition: string | undefined): string {
  return `${encode(queue)}/${partition === undefined ? '*' : encode(partition)}`
}

export function sharedSelector(namespace: string | undefined, task: string | undefined): string {
  const names = [namespace, task].map((name) => (name === undefined ? '*' : encode(name)))
  return `namespace/${names[0]}/task/${names[1]}`
}

const special = /[%/*]/g

function encode(name: string): string {
  return name.replace(special, (character) => {
    return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
  })
}
