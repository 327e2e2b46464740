import { answersLost, clientAbort, clientHalfOpen, clientKill } from './clients.ts'
import { clockSkew, loopStall } from './clock.ts'
import { databaseDrop, databaseReject } from './database-wire.ts'
import { diskFull, fsyncFail, fsyncSlow, powerLoss } from './disk.ts'
import { udpCorrupt, udpCut, udpDuplicate, udpLoss, udpOneWay, udpReorder } from './gossip.ts'
import { hostileSettings } from './hostile-settings.ts'
import type { Nemesis } from './nemesis.ts'
import {
  allNodesKill,
  nodeKill,
  nodePause,
  primaryKill,
  rollingSigterm,
  workerKill,
  workerPause,
  workerPauseLong,
} from './nodes.ts'
import {
  backendTerminations,
  connectionLimit,
  connectionSqueeze,
  pinnedXmin,
  postgresKill,
  postgresPause,
  postgresRestart,
} from './postgres.ts'
import { postgresFailover, postgresFreezeFailover, standbyLost, syncCancel } from './standby.ts'
import {
  lockedLanes,
  lockedLeases,
  lockedPartitions,
  lockedQueue,
  openAckIn,
  openEnqueue,
} from './user-transactions.ts'

export const nemeses: readonly Nemesis[] = [
  workerKill,
  primaryKill,
  nodeKill,
  allNodesKill,
  rollingSigterm,
  workerPause,
  workerPauseLong,
  nodePause,
  postgresKill,
  postgresRestart,
  postgresPause,
  backendTerminations,
  connectionLimit,
  connectionSqueeze,
  pinnedXmin,
  hostileSettings,
  openEnqueue,
  openAckIn,
  lockedQueue,
  lockedPartitions,
  lockedLanes,
  lockedLeases,
  postgresFailover,
  postgresFreezeFailover,
  syncCancel,
  standbyLost,
  diskFull,
  fsyncSlow,
  fsyncFail,
  powerLoss,
  databaseDrop,
  databaseReject,
  udpCut,
  udpOneWay,
  udpLoss,
  udpDuplicate,
  udpReorder,
  udpCorrupt,
  clientAbort,
  clientHalfOpen,
  clientKill,
  answersLost,
  clockSkew,
  loopStall,
]

/** The faults that `npm test` injects. */
export const gateFaults: readonly string[] = [
  workerKill,
  nodeKill,
  rollingSigterm,
  workerPause,
  postgresKill,
  backendTerminations,
  udpCut,
  clientAbort,
].map(({ name }) => name)
