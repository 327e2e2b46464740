import type { WaitGroup, WakeHint } from '@rouse/protocol'

export interface Place {
  readonly queue: string
  readonly partition: string
  readonly namespace: string | null
  readonly task: string | null
}

export interface ModelMessage {
  readonly place: Place
  /** The consumer groups that can still pop the message. */
  readonly pendingFor: Set<string>
}

/** The state that PostgreSQL would hold: which messages are pending for which consumer group. */
export class ModelDatabase {
  readonly messages: ModelMessage[] = []

  commit(place: Place): ModelMessage {
    const message: ModelMessage = { place, pendingFor: new Set(['g', 'h']) }
    this.messages.push(message)
    return message
  }

  /** A push that delivers its message to the group, unless an older one of the same place is pending for it. */
  commitFor(place: Place, group: string): ModelMessage {
    const isBehind = this.messages.some((one) => one.place === place && one.pendingFor.has(group))
    const message = this.commit(place)
    if (!isBehind) message.pendingFor.delete(group)
    return message
  }

  pending(description: WaitGroup): ModelMessage[] {
    return this.messages.filter(
      ({ place, pendingFor }) => pendingFor.has(description.group) && isMeant(place, description),
    )
  }

  /** Takes at most `most` messages for the wait group. */
  pop(description: WaitGroup, most: number): ModelMessage[] {
    const popped = this.pending(description).slice(0, most)
    for (const message of popped) message.pendingFor.delete(description.group)
    return popped
  }
}

/** Whether a pop of the group could deliver from this place. Does not use GroupIndex, in order to test it. */
export function isMeant(place: Place, { source }: WaitGroup): boolean {
  if ('queue' in source) {
    const { queue, partition } = source
    return place.queue === queue && (partition === undefined || place.partition === partition)
  }
  const { namespace, task } = source
  return (
    (namespace === undefined || place.namespace === namespace) &&
    (task === undefined || place.task === task)
  )
}

export function hintOf(place: Place, group: string | null): WakeHint {
  return { ...place, group, count: 1 }
}
