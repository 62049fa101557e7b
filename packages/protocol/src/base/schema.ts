import { type TObject, type TProperties, Type } from "typebox";
import { LIMITS } from "./limits.ts";

// Fields that many requests share.
export const idSchema = Type.String({ minLength: 1, maxLength: LIMITS.idCharsMax });
export const reasonSchema = Type.String({ minLength: 1, maxLength: LIMITS.reasonCharsMax, pattern: "\\S" });
export const waitMsSchema = Type.Optional(
  Type.Integer({ minimum: 0, maximum: LIMITS.waitMsMax, default: 0 }),
);
export const listLimitSchema = Type.Optional(
  Type.Integer({ minimum: 1, maximum: LIMITS.listLimitMax, default: LIMITS.listLimitDefault }),
);

/** `null` means the same as an absent field. */
export const nullable = <Schema extends Parameters<typeof Type.Optional>[0]>(schema: Schema) =>
  Type.Optional(Type.Union([schema, Type.Null()]));

/** An object with these fields and no others, so that a misspelt field is an error. */
export function exactly<Properties extends TProperties>(properties: Properties): TObject<Properties> {
  return Type.Object(properties, { additionalProperties: false });
}
