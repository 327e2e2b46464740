import type { SharedStateManager } from '@rouse/shared-state'
import type { Config } from '../config/config.ts'

/** A waiter may be alone in its wait group and may just have left another group. Both groups count. */
const groupsPerWaiter = 2

/** The settings of the SharedStateManager. */
export function managerSettings(
  config: Config,
): ConstructorParameters<typeof SharedStateManager>[1] {
  return {
    baseIntervalMs: config.popWaitBaseIntervalMs,
    maxIntervalMs: config.popWaitMaxIntervalMs,
    backoffThreshold: config.popWaitBackoffThreshold,
    backoffMultiplier: config.popWaitBackoffMultiplier,
    idleIntervalMs: config.popWaitIdleIntervalMs,
    completionIntervalMs: config.popWaitIdleIntervalMs / 5,
    emptyTrustedMs: config.popWaitIdleIntervalMs * 6,
    verifyAfterMs: config.popWaitIdleIntervalMs / 5,
    holdHintMs: config.popWaitLocalFirstMs,
    aggressivePollDurationMs: config.aggressivePollDurationMs,
    aggressiveExitThreshold: config.aggressiveExitThreshold,
    deliveryTimeoutMs: config.notifyDeliveryTimeoutMs,
    groupsMax: groupsPerWaiter * config.workers * config.waitersMax,
  }
}
