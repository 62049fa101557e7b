import { LIMITS, quote, RelayError } from "@a2a-relay/protocol";
import { Type } from "typebox";
import { parserOf } from "../mechanisms/schema-check.ts";

const id = Type.String({ minLength: 1, maxLength: LIMITS.idCharsMax });
/** Absent, or empty where it comes from a wire that has no other way of saying so. */
const noId = Type.Optional(Type.String({ maxLength: LIMITS.idCharsMax }));
const secret = Type.Optional(Type.String({ maxLength: LIMITS.pushCredentialCharsMax }));
const open = { additionalProperties: true };

const config = {
  id: noId,
  url: Type.String({ minLength: 1, maxLength: LIMITS.urlCharsMax }),
  token: secret,
  authentication: Type.Optional(Type.Object({ scheme: secret, credentials: secret }, open)),
};

export const parseConfig = parserOf(Type.Object(config, open), "taskPushNotificationConfig");
export const parseCreate = parserOf(Type.Object({ taskId: id, ...config }, open), "params");
export const parseNamed = parserOf(Type.Object({ taskId: id, id: noId }, open), "params");
export const parseList = parserOf(
  Type.Object(
    {
      taskId: id,
      pageSize: Type.Optional(Type.Integer({ minimum: 0, maximum: LIMITS.listLimitMax })),
      pageToken: Type.Optional(Type.String({ maxLength: 2 * LIMITS.idCharsMax })),
    },
    open,
  ),
  "params",
);

/** What becomes a header: whatever could end the header, or that no header can carry, is refused when it is given. */
const HEADER_TEXT = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
/** A token of HTTP. */
const SCHEME = /^[\w!#$%&'*+.^`|~-]+$/;

/** Null where nothing was given. The value itself is a secret, which no error repeats. */
export function readSecret(text: string | undefined, field: string): string | null {
  if (text === undefined || text === "") return null;
  if (HEADER_TEXT.test(text)) return text;
  throw new RelayError(
    "invalid_argument",
    `${field}: is sent as an HTTP header, so it is printable ASCII without blanks at its ends`,
  );
}

/** A scheme without credentials tells what the receiver knows, and is sent no header for. */
export function readAuthentication({ scheme = "", credentials }: Authentication = {}): {
  readonly scheme: string | null;
  readonly credentials: string | null;
} {
  const given = readSecret(credentials, "authentication.credentials");
  if (scheme === "" && given === null) return { scheme: null, credentials: null };
  if (SCHEME.test(scheme)) return { scheme, credentials: given };
  throw new RelayError(
    "invalid_argument",
    `authentication.scheme: ${quote(scheme)} is not a scheme of HTTP, such as Bearer`,
  );
}

interface Authentication {
  readonly scheme?: string;
  readonly credentials?: string;
}

/** The id of the last one of the page before. */
export function writePageToken(lastId: string): string {
  return Buffer.from(lastId).toString("base64url");
}

export function readPageToken(token = ""): string {
  const lastId = Buffer.from(token, "base64url").toString();
  if (writePageToken(lastId) === token) return lastId;
  throw new RelayError("invalid_argument", "pageToken: is not one that this relay gave; begin without it");
}
