/** The sender of a request. Every request is anonymous until authentication exists. */
export interface Principal {
  readonly name: string
}

declare module 'fastify' {
  interface FastifyRequest {
    principal: Principal
  }
}

export const anonymous: Principal = { name: 'anonymous' }
