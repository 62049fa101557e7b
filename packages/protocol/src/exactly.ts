import { type TObject, type TProperties, Type } from "typebox";

/** An object with these fields and no others: a misspelt field is an error, never silently without effect. */
export function exactly<Properties extends TProperties>(properties: Properties): TObject<Properties> {
  return Type.Object(properties, { additionalProperties: false });
}
