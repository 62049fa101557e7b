export type Given<Values> = { -readonly [Name in keyof Values]?: Exclude<Values[Name], undefined> };

/** Only what was given: an option that was not set is left out of the request, not sent as undefined. */
export function given<Values extends object>(values: Values): Given<Values> {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== undefined),
  ) as Given<Values>;
}
