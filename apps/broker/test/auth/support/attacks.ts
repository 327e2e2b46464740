// Requests that an attacker without a credential tries.
import { createHmac } from 'node:crypto'
import type { MadeKey } from '../../support/keys.ts'

/** Other ways to write the paths of closed routes and of files. */
export function disguisedPaths(host: string): string[] {
  return [
    '/api/v1/keys',
    '//api/v1/keys',
    '/api/v1//keys',
    '/API/V1/KEYS',
    '/api/v1/keys/',
    '/api/v1/%6beys',
    '/api/v1/keys;x=1',
    '/api/v1/keys?x',
    '/api/v1/keys%00',
    '/api/v1/keys#',
    '/api/v1/./keys',
    '/docs/../api/v1/keys',
    '/docs/%2e%2e/stats',
    '/docs/..%2f..%2f..%2fpackage.json',
    '/docs/%2e%2e%2f%2e%2e%2fpackage.json',
    '/docs/reference/..%2f..%2f..%2fpackage.json',
    '/docs/....//....//etc/passwd',
    '/docs/%5c..%5c..%5cpackage.json',
    '/docs/%00',
    '/openapi.json/../stats',
    '/live/../stats',
    '/stats',
    '/metrics',
    `http://${host}/api/v1/keys`,
    'http://localhost/stats',
    '/api/v1/pop/queue/orders',
    '/api/v1/messages?queue=orders&token=x&access_token=x&key=x',
  ]
}

/** Headers that claim an identity, another path, or a key in the wrong form or place. */
export function forgedHeaders(admin: MadeKey): string[] {
  return [
    'x-forwarded-for: 127.0.0.1',
    'forwarded: for=127.0.0.1',
    'x-real-ip: 127.0.0.1',
    'x-original-url: /live',
    'x-rewrite-url: /live',
    'x-forwarded-user: admin',
    'x-remote-user: admin',
    'x-http-method-override: HEAD',
    `proxy-authorization: Bearer ${admin.key}`,
    `cookie: rouse=${admin.key}; token=${admin.key}`,
    'authorization: Basic YWRtaW46YWRtaW4=',
    'authorization: Bearer',
    'authorization: Bearer null',
    'authorization: Bearer undefined',
    `authorization: Bearer ${admin.key} x`,
    `authorization: Bearer ${admin.key.toLowerCase()}`,
    `authorization: Bearer ${admin.key}\u0000`,
    `authorization: Basic ${admin.key}`,
    `authorization: Bearer rouse_${admin.id}_${'0'.repeat(43)}`,
    'authorization: Bearer __proto__',
    'authorization: Bearer rouse___proto____',
    `authorization: Bearer rousenode_${Date.now()}_${'0'.repeat(64)}`,
    `authorization: Bearer rousenode_${Date.now()}_${createHmac('sha256', '').update(`stats ${Date.now()}`).digest('hex')}`,
    'authorization: Bearer eyJhbGciOiJub25lIn0.eyJyb3VzZSI6WyJhZG1pbiJdfQ.',
    'sec-fetch-site: same-origin',
    'upgrade: websocket\r\nconnection: upgrade',
    'upgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__',
  ]
}
