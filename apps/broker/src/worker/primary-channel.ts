import type { Coordinator } from '@rouse/sidecar'
import type { Outbox, WorkerMessage } from '../ipc.ts'

/** The node's SharedStateManager as a worker sees it: every call is a message to the primary. */
export function remoteCoordinator(outbox: Outbox<WorkerMessage>): Coordinator {
  return {
    setWaiting: (group, count) => outbox.post({ type: 'waiting', group, count }),
    requestCheck: (group) => outbox.post({ type: 'check', group }),
    grantTaken: (grant) => outbox.post({ type: 'taken', grant }),
    releaseGroup: (grant, outcome, found) =>
      outbox.post({ type: 'release', grant, outcome, found }),
    notifyMessageAvailable(woken) {
      if (woken.length > 0) outbox.post({ type: 'available', woken })
    },
    notifyPartitionFree(woken) {
      if (woken.length > 0) outbox.post({ type: 'free', woken })
    },
    notifyOutcomeUnknown: () => outbox.post({ type: 'outcomeUnknown' }),
  }
}
