import { operations, operationsIn } from "@a2a-relay/protocol";

const REQUIRED = operationsIn(operations)
  .flatMap(({ answers }) => Object.values(answers))
  .flatMap(
    ({ schema = {} }: { readonly schema?: { readonly required?: readonly string[] } }) =>
      schema.required ?? [],
  );

/** An answer with the members that all operations require. */
export const ANY_ANSWER: Readonly<Record<string, unknown>> = Object.fromEntries(
  REQUIRED.map((member) => [member, null]),
);
