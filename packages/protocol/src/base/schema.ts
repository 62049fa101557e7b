import { type Static, type TObject, type TProperties, type TUnsafe, Type } from "typebox";
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

/** A time in an answer: ISO 8601 in UTC. */
export const instantSchema = Type.String({ format: "date-time" });
/** A JSON object whose members the relay does not interpret. */
export const membersSchema = Type.Record(Type.String(), Type.Unknown());

/** `null` means the same as an absent field. */
export const nullable = <Schema extends Parameters<typeof Type.Optional>[0]>(schema: Schema) =>
  Type.Optional(Type.Union([schema, Type.Null()]));

/** An object with these fields and no others, so that a misspelt field is an error. */
export function exactly<Properties extends TProperties>(properties: Properties): TObject<Properties> {
  return Type.Object(properties, { additionalProperties: false });
}

/** An object with these fields; others are kept. */
export function openObject<Properties extends TProperties>(
  properties: Properties,
  title: string,
): TUnsafe<Static<TObject<Properties>> & { [member: string]: unknown }> {
  return Type.Unsafe(Type.Object(properties, { additionalProperties: true, title }));
}

/** A value that no reader may change, at any depth. */
export type Frozen<Value> = Value extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : Value extends object
    ? { readonly [Key in keyof Value]: Frozen<Value[Key]> }
    : Value;
