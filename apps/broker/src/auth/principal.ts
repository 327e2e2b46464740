/** Who sends a request. Authentication will decide it; until then every request is anonymous. */
export interface Principal {
  readonly name: string
}

declare module 'fastify' {
  interface FastifyRequest {
    principal: Principal
  }
}

export const anonymous: Principal = { name: 'anonymous' }
