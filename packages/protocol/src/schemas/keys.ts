import { type Static, Type } from '../typebox.ts'
import { Name, Nullable, Time } from './name.ts'

/** Sets of grants with a name, for `rouse keys create --preset`. */
export const keyPresets = ['producer', 'worker', 'viewer', 'operator', 'admin'] as const

const Limit = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000_000_000, description }))

/** Divided among the live nodes. */
export const KeyLimitsSchema = Type.Object({
  requestsPerSecond: Limit('Requests that a key may send in a second'),
  bytesPerSecond: Limit('Bytes of bodies and responses in a second'),
  waitingPops: Limit('Pops that may wait at once'),
})
export type KeyLimits = Static<typeof KeyLimitsSchema>

export const KeyBodySchema = Type.Object({
  name: Name('Who or what uses the key; several keys may have one name'),
  preset: Type.Optional(Type.Enum([...keyPresets])),
  queue: Type.Optional(Name('For a preset: the name of a queue, or a prefix that ends in *')),
  grants: Type.Optional(
    Type.Array(Type.String({ description: 'Such as push:orders, pop:mail-*@sender, admin' })),
  ),
  limits: Type.Optional(KeyLimitsSchema),
  expiresAt: Type.Optional(Type.String({ description: 'A time with a time zone' })),
})
export type KeyBody = Static<typeof KeyBodySchema>

export const RotateKeyBodySchema = Type.Object({
  graceSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 2_592_000,
      description: 'How long the old key stays valid',
    }),
  ),
})
export type RotateKeyBody = Static<typeof RotateKeyBodySchema>

const fields = {
  id: Type.String(),
  name: Type.String(),
  grants: Type.Array(Type.String()),
  limits: KeyLimitsSchema,
  createdBy: Type.String(),
  createdAt: Time,
  expiresAt: Nullable(Time),
  revokedAt: Nullable(Time),
  lastUsedDay: Nullable(Type.String({ description: 'The date of the last use, by UTC' })),
}

/** An API key as operators see it: nothing of its secret. */
export const KeySchema = Type.Object(fields)
export type Key = Static<typeof KeySchema>

export const KeysAnswerSchema = Type.Object({ keys: Type.Array(KeySchema) })
export type KeysAnswer = Static<typeof KeysAnswerSchema>

export const NewKeyAnswerSchema = Type.Object({
  ...fields,
  key: Type.String({ description: 'The key itself; it is shown only here' }),
})
export type NewKeyAnswer = Static<typeof NewKeyAnswerSchema>

export const RevokedKeyAnswerSchema = Type.Object({ id: Type.String(), revoked: Type.Boolean() })
export type RevokedKeyAnswer = Static<typeof RevokedKeyAnswerSchema>

/** A request with a session cookie that changes something needs this header, with any value. */
export const csrfHeader = 'x-rouse-csrf'

export const SessionBodySchema = Type.Object({
  key: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: 'An API key' })),
  code: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 2_048,
      description: 'Instead of a key: a code of the OIDC issuer, with the two other fields',
    }),
  ),
  codeVerifier: Type.Optional(
    Type.String({ minLength: 43, maxLength: 128, description: 'The secret of PKCE' }),
  ),
  redirectUri: Type.Optional(
    Type.String({ minLength: 1, maxLength: 2_048, description: 'Where the issuer sent the code' }),
  ),
})
export type SessionBody = Static<typeof SessionBodySchema>

/** Who sends the request. */
export const SessionAnswerSchema = Type.Object({
  principal: Nullable(Type.String({ description: 'Null: not signed in' })),
  grants: Type.Array(Type.String()),
  keyId: Nullable(Type.String({ description: 'Null: no API key' })),
  expiresAt: Nullable(Time),
  isOpen: Type.Boolean({ description: 'Whether requests without credentials are served' }),
  signInWith: Type.Array(Type.Enum(['key', 'oidc']), {
    description: 'What a session can be started with',
  }),
  authorizationUrl: Nullable(
    Type.String({
      description:
        'Where users of the OIDC issuer sign in; add redirect_uri, state and code_challenge. Null: not with an issuer',
    }),
  ),
})
export type SessionAnswer = Static<typeof SessionAnswerSchema>
