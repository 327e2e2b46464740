/** A message may have become deliverable. SQL functions return hints as rows; nodes send them to their
 * peers. */
export interface WakeHint {
  readonly queue: string
  /** Null or absent: any partition. */
  readonly partition?: string | null | undefined
  /** Null or absent: every consumer group. */
  readonly group?: string | null | undefined
  /** Null: the queue has none. Absent: not known, so any namespace may match. */
  readonly namespace?: string | null | undefined
  readonly task?: string | null | undefined
  /**
   * Of a push: the messages added. Of an ack that freed a lane: the messages that the group can pop from it, 0
   * if there are none. Absent: not known.
   */
  readonly count?: number | undefined
}
