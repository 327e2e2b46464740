// The metrics of a client. Names and units are those of OpenTelemetry where its conventions have them.
import type { Counter, Histogram, Meter } from '@opentelemetry/api'

export interface Instruments {
  /** Messages that were pushed, or could not be. */
  readonly sent: Counter
  /** Messages that were delivered. */
  readonly consumed: Counter
  /** Acknowledgements that were accepted, by `rouse.status`. */
  readonly ended: Counter
  /** Seconds of pushes, deliveries and acknowledgements. */
  readonly operations: Histogram
  /** Seconds of handlers. */
  readonly handled: Histogram
}

/** From a millisecond to ten seconds, as the conventions advise for durations. */
const boundaries = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

export function createInstruments(meter: Meter): Instruments {
  const seconds = { unit: 's', advice: { explicitBucketBoundaries: boundaries } }
  const messages = { unit: '{message}' }
  return {
    sent: meter.createCounter('messaging.client.sent.messages', {
      ...messages,
      description: 'Messages that the client tried to push',
    }),
    consumed: meter.createCounter('messaging.client.consumed.messages', {
      ...messages,
      description: 'Messages that were delivered to the client',
    }),
    ended: meter.createCounter('rouse.client.ended.messages', {
      ...messages,
      description: 'Acknowledgements that took effect, by how they ended the delivery',
    }),
    operations: meter.createHistogram('messaging.client.operation.duration', {
      ...seconds,
      description: 'Duration of pushes, deliveries and acknowledgements',
    }),
    handled: meter.createHistogram('messaging.process.duration', {
      ...seconds,
      description: 'Duration of handlers',
    }),
  }
}
