// Stores a history of millions of records in numeric columns. One object per record would take ten times the
// memory.

/** A growing array of numbers. */
export class Column {
  #values: Float64Array | Int32Array
  #length = 0

  constructor(kind: 'float' | 'integer') {
    this.#values = kind === 'float' ? new Float64Array(1024) : new Int32Array(1024)
  }

  get length(): number {
    return this.#length
  }

  push(value: number): number {
    if (this.#length === this.#values.length) {
      const grown =
        this.#values instanceof Float64Array
          ? new Float64Array(this.#length * 2)
          : new Int32Array(this.#length * 2)
      grown.set(this.#values)
      this.#values = grown
    }
    this.#values[this.#length] = value
    this.#length += 1
    return this.#length - 1
  }

  at(index: number): number {
    const value = index < this.#length ? this.#values[index] : undefined
    if (value === undefined)
      throw new RangeError(`row ${index} is out of range: the column has ${this.#length}`)
    return value
  }

  set(index: number, value: number): void {
    this.#values[index] = value
  }
}

/** Numbers strings in the order in which they first appear. */
export class Names {
  readonly #numbers = new Map<string, number>()
  readonly #texts: string[] = []

  get length(): number {
    return this.#texts.length
  }

  numberOf(text: string): number {
    const known = this.#numbers.get(text)
    if (known !== undefined) return known
    this.#numbers.set(text, this.#texts.length)
    return this.#texts.push(text) - 1
  }

  find(text: string): number | undefined {
    return this.#numbers.get(text)
  }

  textOf(number: number): string {
    return this.#texts[number] ?? ''
  }
}

/**
 * An index over a column: the rows of each key, for keys from 0 up. Rows with a negative key are left out.
 */
export class RowsByKey {
  readonly #starts: Int32Array
  readonly #rows: Int32Array

  constructor(keys: Column, keyCount: number) {
    this.#starts = new Int32Array(keyCount + 1)
    for (let row = 0; row < keys.length; row += 1) {
      const key = keys.at(row)
      if (key >= 0) this.#starts[key + 1] = (this.#starts[key + 1] ?? 0) + 1
    }
    for (let key = 0; key < keyCount; key += 1) {
      this.#starts[key + 1] = (this.#starts[key + 1] ?? 0) + (this.#starts[key] ?? 0)
    }
    this.#rows = new Int32Array(this.#starts[keyCount] ?? 0)
    const next = this.#starts.slice()
    for (let row = 0; row < keys.length; row += 1) {
      const key = keys.at(row)
      if (key < 0) continue
      const place = next[key] ?? 0
      this.#rows[place] = row
      next[key] = place + 1
    }
  }

  of(key: number): Int32Array {
    return this.#rows.subarray(this.#starts[key], this.#starts[key + 1])
  }
}

/** Uses an index loop, because this runs millions of times and an iterator takes several times as long. */
export function mapRows<Item>(rows: Int32Array, itemOf: (row: number) => Item): Item[] {
  const items: Item[] = []
  for (let i = 0; i < rows.length; i += 1) items.push(itemOf(rows[i] as number))
  return items
}
