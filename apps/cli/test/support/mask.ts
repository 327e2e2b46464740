// Replaces what changes between runs by values of the same length.
import { version } from '../../src/version.ts'
import type { TestNode } from './node.ts'

export function masked(text: string, { url }: TestNode): string {
  return text
    .replaceAll(url, 'http://127.0.0.1:00000'.slice(0, url.length))
    .replaceAll(/127\.0\.0\.1:\d{4,5}\b/g, sameLength('127.0.0.1:00000'))
    .replaceAll(
      /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g,
      '00000000-0000-7000-8000-000000000000',
    )
    .replaceAll(/(?<=rouse ack |"receipt":"|"leaseId":")[\w-]{48}/g, 'RECEIPT_'.repeat(6))
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z/g, '2026-01-01T00:00:00.000Z')
    .replaceAll(/\b\d\d:\d\d:\d\d\b(?!\.\d)/g, '00:00:00')
    .replaceAll(
      /( in)? *(?<![\d.])\b(\d+(\.\d)?s|\d+m\d\ds|\d+h\d\dm|\d+d\d\dh)\b( ago)?/g,
      sameLength('AGE'),
    )
    .replaceAll(queueRates, (_, before: string, pushed: string, completed: string, age: string) => {
      return before + sameLength('R')(pushed) + sameLength('R')(completed) + age
    })
    .replaceAll(/ *(?<![\d.:,])\b\d[\d,]*\.\d\b(?!\.\d|\d)/g, sameLength('R'))
    .replaceAll(
      /"(\w*(AgeMs|PerSecond|seq|Seq|letterId|queueId|rttMs|version))":("?)[\d.]+\3/g,
      '"$1":0',
    )
    .replaceAll(/"(partition_id|partitionId|transaction_id|transactionId)":"[\d-]+"/g, '"$1":"0"')
    .replaceAll(/"options":\{[^{}]*(\{[^{}]*\}[^{}]*)*\}/g, '"options":{…}')
    .replaceAll(version, sameLength('VERSION')(version))
    .replaceAll(/(OPTION +VALUE\n)(.+\n)+?(?=change one)/g, '$1…\n')
}

/** IN/s and OUT/s in the row of a queue: six numbers stand before them, and the age behind them. */
const queueRates = /((?: +[\d,]+[kM]?){6})( +[\d.]+)( +[\d.]+)( +(?:AGE|–))/g

/** Masks numbers and the spaces between columns, too. */
export function maskedLoosely(text: string, node: TestNode): string {
  return masked(text, node)
    .replaceAll(/^.*\r(?!\n)/gm, '')
    .replaceAll(/[▁▂▃▄▅▆▇█]+/g, '▁')
    .replaceAll(/[\d,.]*\d[\d,.]*[kM]?|\bR\b/g, '0')
    .replaceAll(/ {2,}/g, '  ')
}

/** Puts the mask at the right end, because such columns are aligned to the right. */
function sameLength(mask: string): (found: string) => string {
  return (found) => mask.slice(0, found.length).padStart(found.length)
}
