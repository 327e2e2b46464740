/** A map that forgets its oldest entry when it has too many: a memory of what a process has seen last. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #sizeMax: number

  constructor(sizeMax: number) {
    super()
    this.#sizeMax = sizeMax
  }

  override set(key: Key, value: Value): this {
    super.set(key, value)
    if (this.size > this.#sizeMax) this.delete(this.keys().next().value as Key)
    return this
  }
}
