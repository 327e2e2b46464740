// Bugs in the nodes' code, patched into the built modules.
import type { Bug } from './bug.ts'

export const nodeBugs: readonly Bug[] = [
  {
    name: 'answer-failed-pushes',
    does: 'a push is reported as stored before it is known to be committed',
    replaces: [
      {
        file: 'packages/sidecar/dist/writes/write-operations.js',
        find: 'await store(executor, items, reserved, lockTimeoutMs);',
        put: `await store(executor, items, reserved, lockTimeoutMs).catch(() => ({
            woken: [],
            items: items.map(({ id }) => ({ status: 'queued', messageId: id, partitionId: '1', seq: 1 })),
        }));`,
      },
    ],
    caughtBy: ['lost'],
    workloads: ['plain'],
    // The bug shows only if a push is in progress when its connection or the server dies.
    faults: ['backend-terminations', 'postgres-kill', 'postgres-restart'],
    rate: 3,
    seconds: 40,
  },
  {
    name: 'trust-a-cancelled-wait',
    does: 'a commit whose wait for the standby was cancelled is reported as a success',
    replaces: [
      {
        file: 'packages/database/dist/hosts/host-client.js',
        find: "routine === 'SyncRepWaitForLSN'",
        put: 'false',
      },
    ],
    caughtBy: ['lost', 'unexplained duplicates'],
    workloads: ['plain'],
    faults: ['sync-cancel'],
    seconds: 25,
    standby: 'sync',
  },
  {
    name: 'drop-the-last-of-a-batch',
    does: 'the last item of a larger push is reported as stored, but is not stored',
    replaces: [
      {
        file: 'packages/sidecar/dist/writes/write-operations.js',
        find: 'const pushed = await store(executor, items, reserved, lockTimeoutMs);',
        put: `const kept = items.length > 2 ? items.slice(0, -1) : items;
        const pushed = await store(executor, kept, reserved, lockTimeoutMs);
        if (kept.length < items.length)
            pushed.items.push({ status: 'queued', messageId: items.at(-1).id, partitionId: '1', seq: 1 });`,
      },
    ],
    caughtBy: ['lost'],
    workloads: ['plain'],
    faults: [],
    seconds: 10,
  },
  {
    name: 'mix-up-answers',
    does: 'pushes that share a SQL call all get the result of the first push',
    replaces: [
      {
        file: 'packages/sidecar/dist/writes/write-operations.js',
        find: 'return all.slice(start, at);',
        put: 'return all.slice(0, items.length);',
      },
    ],
    caughtBy: ['dedup doubles'],
    workloads: ['dedup-retries'],
    faults: [],
    seconds: 10,
  },
  {
    name: 'release-what-was-answered',
    does: 'a lease is sometimes released after its response was sent',
    replaces: [
      {
        file: 'apps/broker/dist/http/client-watch.js',
        find: '!this.#response.writableFinished)',
        put: '(!this.#response.writableFinished || Math.random() < 0.05))',
      },
    ],
    caughtBy: ['unexplained duplicates'],
    workloads: ['slow-consumers'],
    faults: [],
    seconds: 15,
  },
  {
    name: 'lose-wakes',
    does: 'a push sends no wake-up, and there is no fallback poll',
    replaces: [
      {
        file: 'packages/sidecar/dist/writes/write-operations.js',
        find: 'this.#options.coordinator.notifyMessageAvailable(pushed.woken);',
        put: '',
      },
      {
        file: 'packages/shared-state/dist/shared-state-manager.js',
        find: 'return isUrgent ? group.backoff.intervalMs : calmMs;',
        put: 'return isUrgent ? 600_000 : 600_000 + calmMs;',
      },
    ],
    caughtBy: ['late wakes'],
    workloads: ['wakes'],
    faults: [],
    seconds: 15,
  },
  {
    name: 'share-the-slots',
    does: 'pushes that wait for a locked partition keep their slots and retry without end',
    replaces: [
      {
        file: 'packages/sidecar/dist/writes/write-operations.js',
        find: 'run: (batch) => run(batch, lockTimeoutsMs.shared, (writes) => locked.moveIn(writes)),',
        put: 'run: (batch) => run(batch, lockTimeoutsMs.alone, undefined),',
      },
    ],
    caughtBy: ['hostile neighbours'],
    workloads: ['one-partition', 'plain'],
    faults: ['locked-partitions', 'locked-partitions', 'locked-partitions'],
    seconds: 60,
    rate: 0.3,
  },
]
