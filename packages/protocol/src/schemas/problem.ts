import { type Static, Type } from '../typebox.ts'

/** The body that `toProblem` returns. */
export const ProblemSchema = Type.Object({
  type: Type.String(),
  title: Type.String(),
  status: Type.Integer(),
  code: Type.String(),
  detail: Type.String(),
  retryable: Type.Boolean(),
  requestId: Type.String(),
  node: Type.String(),
  errors: Type.Optional(
    Type.Array(
      Type.Object({
        field: Type.String(),
        message: Type.String(),
        suggestion: Type.Optional(
          Type.String({ description: 'For an unknown field: the name that is probably meant' }),
        ),
      }),
    ),
  ),
  leases: Type.Optional(
    Type.Integer({ description: 'How many leases are held by open transactions of consumers' }),
  ),
  oldestLeaseAgeMs: Type.Optional(
    Type.Integer({ description: 'How long ago the oldest of these leases began' }),
  ),
  grant: Type.Optional(Type.String({ description: 'The grant that the credential lacks' })),
  error: Type.String({ description: 'Repeats the detail for old clients' }),
})
export type ProblemBody = Static<typeof ProblemSchema>
