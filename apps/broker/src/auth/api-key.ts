// The form of an API key: `rouse_<id>_<secret>`. Both parts are base62. The last six characters of the secret are a
// checksum, so that scanners for leaked secrets recognise a key, and a mistyped key costs no lookup.
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const idLength = 12
const randomLength = 37
const checksumLength = 6
const keyForm = /^rouse_([0-9A-Za-z]{12})_[0-9A-Za-z]{43}$/
export const apiKeyLength = 'rouse_'.length + idLength + 1 + randomLength + checksumLength

/** `randomBytes` must be unpredictable, such as that of node:crypto. */
export function newApiKey(randomBytes: (size: number) => Uint8Array): {
  readonly id: string
  readonly key: string
} {
  const id = randomText(idLength, randomBytes)
  const start = `rouse_${id}_${randomText(randomLength, randomBytes)}`
  return { id, key: `${start}${checksum(start)}` }
}

/** The id of a key; undefined if the text is not a key. */
export function apiKeyId(text: string): string | undefined {
  if (text.length !== apiKeyLength) return undefined
  const id = keyForm.exec(text)?.[1]
  if (id === undefined) return undefined
  const end = apiKeyLength - checksumLength
  return checksum(text.slice(0, end)) === text.slice(end) ? id : undefined
}

/** What is stored of a key. A key has 220 random bits, so a slow hash would gain nothing. */
export function apiKeyHash(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}

function checksum(text: string): string {
  let rest = crc32(text)
  let out = ''
  for (let i = 0; i < checksumLength; i += 1) {
    out = digits.charAt(rest % digits.length) + out
    rest = Math.floor(rest / digits.length)
  }
  return out
}

/** Bytes above the largest multiple of 62 are dropped, so that all characters are equally likely. */
function randomText(length: number, randomBytes: (size: number) => Uint8Array): string {
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < 248 && text.length < length) text += digits.charAt(byte % digits.length)
    }
  }
  return text
}
