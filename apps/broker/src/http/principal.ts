import type { FastifyRequest } from 'fastify'

/** Who asks. Authentication will be decided here and nowhere else; until then everybody is nobody. */
export interface Principal {
  readonly name: string
}

declare module 'fastify' {
  interface FastifyRequest {
    principal: Principal
  }
}

const anonymous: Principal = { name: 'anonymous' }

export function principalOf(_request: FastifyRequest): Principal {
  return anonymous
}
