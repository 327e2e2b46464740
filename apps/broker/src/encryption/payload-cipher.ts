// Encrypts the payloads of encrypted queues with AES-256-GCM. Each ciphertext is bound to its queue and
// message. The stored form is not valid JSON, so that it cannot be confused with a plain payload:
//
//   enc1:<key id>:<base64 of nonce, ciphertext, tag>
//
// The first key encrypts ("seals"). To decrypt ("open"), the key id selects the key.
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { RouseError } from '@rouse/protocol'

/** The message that a payload belongs to. The payload cannot be decrypted for any other message. */
export interface PayloadPlace {
  readonly queue: string
  readonly id: string
}

/** The place of a schedule's payload. No message has such an id. */
export function schedulePlace({ queue, name }: { queue: string; name: string }): PayloadPlace {
  return { queue, id: `schedule ${name}` }
}

export interface PayloadCipher {
  readonly canSeal: boolean
  seal(place: PayloadPlace, payload: string): string
  /** Returns the payload as JSON text. A payload that was never sealed is returned unchanged. */
  open(place: PayloadPlace, stored: string): string
}

/** Every sealed payload begins with this prefix. No JSON text does. */
export const sealedPrefix = 'enc1:'

const encryptionKeysMax = 3
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16
const sealedForm = /^enc1:([0-9a-f]{8}):([A-Za-z0-9+/=]+)$/

/** Parses one to three comma-separated keys of 32 bytes, in base64 or hex. Throws if one is invalid. */
export function readEncryptionKeys(text: string): Buffer[] {
  const keys = text.split(',').map((word, i) => readKey(word.trim(), i + 1))
  if (keys.length > encryptionKeysMax) throw new Error(`has more than ${encryptionKeysMax} keys`)
  if (new Set(keys.map(keyId)).size < keys.length) throw new Error('contains the same key twice')
  return keys
}

function readKey(word: string, position: number): Buffer {
  const isHex = /^[0-9a-f]{64}$/i.test(word)
  const isBase64 = /^[A-Za-z0-9+/]{43}=?$/.test(word)
  const key = Buffer.from(word, isHex ? 'hex' : 'base64')
  if ((isHex || isBase64) && key.length === keyBytes) return key
  throw new Error(`must be ${keyBytes} bytes in base64 or hex; key ${position} is not`)
}

export function createPayloadCipher(keys: readonly Buffer[]): PayloadCipher {
  const [first] = keys
  const known = new Map(keys.map((key) => [keyId(key), key]))
  return {
    canSeal: first !== undefined,
    seal(place, payload) {
      if (first === undefined) throw noKey(place)
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', first, nonce).setAAD(nameOf(place))
      const text = Buffer.concat([nonce, cipher.update(payload, 'utf8'), cipher.final()])
      return `${sealedPrefix}${keyId(first)}:${Buffer.concat([text, cipher.getAuthTag()]).toString('base64')}`
    },
    open(place, stored) {
      if (!stored.startsWith(sealedPrefix)) return stored
      const [, id = '', base64 = ''] = sealedForm.exec(stored) ?? []
      const key = known.get(id)
      if (key === undefined) throw noKey(place)
      const bytes = Buffer.from(base64, 'base64')
      try {
        const nonce = bytes.subarray(0, nonceBytes)
        const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
        decipher.setAAD(nameOf(place)).setAuthTag(bytes.subarray(-tagBytes))
        const text = decipher.update(bytes.subarray(nonceBytes, -tagBytes))
        // Only `final` verifies that the text is authentic.
        return Buffer.concat([text, decipher.final()]).toString('utf8')
      } catch (error) {
        throw broken(place, error)
      }
    },
  }
}

/** Takes the value of ROUSE_ENCRYPTION_KEY. Without a key the cipher cannot seal and cannot open. */
export function payloadCipherOf(setting: string | undefined): PayloadCipher {
  return createPayloadCipher(setting === undefined ? [] : readEncryptionKeys(setting))
}

function keyId(key: Buffer): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 8)
}

/** Queue names contain no control characters, so different places have different texts. */
function nameOf({ queue, id }: PayloadPlace): Buffer {
  return Buffer.from(`${queue}\u0000${id}`)
}

function noKey({ queue }: PayloadPlace): RouseError {
  return new RouseError(
    'encryption_unavailable',
    `queue "${queue}" is encrypted, but this node does not have the key (ROUSE_ENCRYPTION_KEY)`,
  )
}

function broken({ queue, id }: PayloadPlace, cause: unknown): RouseError {
  return new RouseError(
    'internal',
    `message ${id} of queue "${queue}" is encrypted and cannot be decrypted`,
    { cause },
  )
}
