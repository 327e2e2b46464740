import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

/** The addresses and pids of a running development cluster, for scripts and tests. */
export interface ClusterDescription {
  readonly url: string
  readonly nodes: readonly {
    readonly id: string
    readonly url: string
    readonly pid: number
    readonly gossip: string
  }[]
  readonly postgres: { readonly url: string; readonly pid: number }
}

/**
 * Writes to a temporary file and renames it, so that readers never see half a file. Writes are sequential.
 */
export class ClusterFile {
  readonly #path: string
  #last: Promise<void> = Promise.resolve()

  constructor(path: string) {
    this.#path = path
  }

  write(description: ClusterDescription): Promise<void> {
    return this.#after(async () => {
      const draft = `${this.#path}.draft`
      await mkdir(dirname(this.#path), { recursive: true })
      await writeFile(draft, `${JSON.stringify(description, null, 2)}\n`)
      await rename(draft, this.#path)
    })
  }

  /** Only the owner of the folder may call this. */
  remove(): Promise<void> {
    return this.#after(() => rm(this.#path, { force: true }))
  }

  /** Any process may call this. Keeps a file that names a living process: its cluster may be running. */
  removeIfDead(): Promise<void> {
    return this.#after(async () => {
      if (!(await namesLiving(this.#path))) await rm(this.#path, { force: true })
    })
  }

  #after(work: () => Promise<void>): Promise<void> {
    this.#last = this.#last.then(work, work)
    return this.#last
  }
}

async function namesLiving(path: string): Promise<boolean> {
  try {
    const { nodes, postgres } = JSON.parse(await readFile(path, 'utf8')) as ClusterDescription
    return [...nodes, postgres].some(({ pid }) => isAlive(pid))
  } catch {
    // The file is missing or has another format.
    return false
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
