// What clients of the cluster have to bear, and what must not happen, by what is done to its nodes.
//
//   rolled   Nodes that are stopped finish what they began and say `Connection: close` before they close. A request is asked
//            once more, only once, and only where a connection closed before any byte of its answer. Nothing else may go
//            wrong: no other status, no refused ack, no message twice.
//   killed   A node that is killed leaves requests unanswered or half answered, and the balancer answers some in its place:
//            their outcome is unknown. A push is repeated until it is known, with the ids that keep it from doubling. What
//            was delivered and is not known to be acknowledged may come again when its lease has ended, and not before.
import { ConnectionClosed } from './http.mjs'

/** Answers of the balancer in the place of a node that died. */
const unknowns = [502, 503, 504]

/** Longer than the load has to drain: nothing comes back by itself, what was left behind is found. */
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
    account: () => `${askedAgain} requests asked once more`,
  }
}

export function killedRules() {
  let unknown = 0
  return {
    leaseSeconds: killedLeaseSeconds,
    mayComeAgain: true,
    repeatsPushes: true,
    /** Undefined where the outcome is unknown. */
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
