import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

/** What scripts and tests need to know of a running development cluster. */
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

/** Written aside and renamed: whoever reads it finds all or nothing. Writes happen one after another. */
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

  remove(): Promise<void> {
    return this.#after(() => rm(this.#path, { force: true }))
  }

  #after(work: () => Promise<void>): Promise<void> {
    this.#last = this.#last.then(work, work)
    return this.#last
  }
}
