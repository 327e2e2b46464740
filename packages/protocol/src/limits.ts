const KiB = 1024
const MiB = 1024 * KiB

/** The default limits of the API. A value beyond its limit is an error; it is never clamped. */
export const limits = Object.freeze({
  bodyBytesMax: 4 * MiB,
  headerBytesMax: 8 * KiB,
  headersTimeoutMs: 10_000,
  nameBytesMax: 255,
  pushItemsMax: 10_000,
  payloadBytesMax: 1 * MiB,
  messageHeadersBytesMax: 64 * KiB,
  delayMsMax: 31_536_000_000,
  priorityMax: 9,
  retryLimitMax: 1_000,
  retryBackoffMsMax: 604_800_000,
  ttlMsMax: 3_153_600_000_000,
  uniqueWindowMsMax: 31_536_000_000,
  batchMax: 1_000,
  partitionsMax: 1_000,
  popTimeoutMsMax: 300_000,
  waitersPerWorkerMax: 15_000,
  leaseSecondsMax: 86_400,
  acknowledgmentsMax: 1_000,
  transactionOperationsMax: 1_000,
  errorTextBytesMax: 8 * KiB,
  errorCodeBytesMax: 255,
  resultBytesMax: 64 * KiB,
  progressBytesMax: 4 * KiB,
  leasesPerMessageMax: 100,
  pageSizeMax: 1_000,
  queuesPerPageMax: 10_000,
})

export type Limits = Readonly<Record<keyof typeof limits, number>>

/** The defaults for absent request options. */
export const requestDefaults = Object.freeze({
  consumerGroup: '__QUEUE_MODE__',
  batch: 1,
  partitions: 1,
  popTimeoutMs: 30_000,
  extendSeconds: 60,
  pageSize: 100,
})
