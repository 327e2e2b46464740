// What clients of the cluster must tolerate, and what must not happen, while its nodes are restarted or
// killed.
//
//   rolled   A stopped node finishes its requests and sends `Connection: close` before it closes. A client
//            repeats a request only once, and only if the connection closed before any byte of the response.
//            Nothing else may go wrong: no other status, no refused ack, no message twice.
//   killed   A killed node leaves requests unanswered or half answered. The balancer answers some of them in
//            its place. The outcome of all these requests is unknown. A client repeats a push until its
//            outcome is known; the ids prevent duplicates. A message without a confirmed ack may be delivered
//            again when its lease has ended, and not before.
import { ConnectionClosed } from './http.mjs'

/** Statuses that the balancer returns for a node that died. */
const unknowns = [502, 503, 504]

/** Longer than the load takes to drain, so that no lease expires meanwhile and leftovers are detected. */
const rolledLeaseSeconds = 120
const killedLeaseSeconds = 3

export function rolledRules() {
  let askedAgain = 0
  return {
    leaseSeconds: rolledLeaseSeconds,
    mayComeAgain: false,
    repeatsPushes: false,
    async attempt(send) {
      try {
        return known(await send())
      } catch (error) {
        if (!(error instanceof ConnectionClosed && error.isUnanswered)) throw error
        askedAgain += 1
        return known(await send())
      }
    },
    account: () => `${askedAgain} requests repeated`,
  }
}

export function killedRules() {
  let unknown = 0
  return {
    leaseSeconds: killedLeaseSeconds,
    mayComeAgain: true,
    repeatsPushes: true,
    /** Undefined if the outcome is unknown. */
    async attempt(send) {
      try {
        const answer = await send()
        if (!unknowns.includes(answer.status)) return known(answer)
      } catch (error) {
        if (!(error instanceof ConnectionClosed)) throw error
      }
      unknown += 1
      return undefined
    },
    account: () => `${unknown} outcomes unknown`,
  }
}

function known(answer) {
  if (answer.status >= 300) throw new Error(`${answer.status} ${answer.text}`)
  return answer
}
