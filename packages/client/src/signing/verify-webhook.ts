import { formatInstant, type PushPayload, quote, RelayError } from "@a2a-relay/protocol";
import { bytesOfBase64, importSecret } from "./secret.ts";

export interface WebhookVerification {
  /** A `Headers`, or an object such as Node's `request.headers`. */
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The raw body. A body that was parsed and serialised again has another signature. */
  readonly body: string | Uint8Array | ArrayBuffer;
  /** The endpoint's secret, `whsec_…`. */
  readonly secret?: string | undefined;
  /** All valid secrets, during a rotation. */
  readonly secrets?: readonly string[] | undefined;
  /** The largest accepted difference to the current time, in milliseconds, against replays. Default five minutes. */
  readonly toleranceMs?: number | undefined;
  /** Now, in epoch milliseconds. */
  readonly nowMs?: number | undefined;
}

const TOLERANCE_MS = 5 * 60_000;
/** A rotation makes two; the bound limits the work for a hostile request. */
const SIGNATURES_MAX = 10;

/**
 * Verifies the signature and the age of a webhook, by the rules of Standard Webhooks, and reads it.
 * `permission_denied` when the check fails, `invalid_argument` when the request is no signed webhook.
 */
export async function verifyWebhook(webhook: WebhookVerification): Promise<PushPayload> {
  const id = headerOf(webhook, "webhook-id");
  const timestamp = headerOf(webhook, "webhook-timestamp");
  const signatures = parseSignatures(headerOf(webhook, "webhook-signature"));
  const body = bytesOf(webhook.body);
  const signed = join(new TextEncoder().encode(`${id}.${timestamp}.`), body);
  const secrets = secretsOf(webhook);
  if (!(await isSignedByOne(secrets, signatures, signed))) {
    throw new RelayError(
      "permission_denied",
      "webhook-signature: none of its signatures is right; is it another endpoint's secret, or was the body changed?",
    );
  }
  assertFresh(timestamp, webhook);
  return parsePayload(body);
}

function headerOf({ headers }: WebhookVerification, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : valueIn(headers, name);
  if (typeof value === "string" && value !== "") return value;
  throw new RelayError(
    "invalid_argument",
    `${name}: this header is missing, so the request is no signed webhook`,
  );
}

/** Header names have any case. A repeated header counts as missing. */
function valueIn(headers: Readonly<Record<string, unknown>>, name: string): unknown {
  const values = Object.entries(headers).flatMap(([key, value]) => (key.toLowerCase() === name ? value : []));
  return values.length === 1 ? values[0] : undefined;
}

/** Skips signatures of other versions. */
function parseSignatures(header: string): readonly Uint8Array<ArrayBuffer>[] {
  const texts = header.split(" ").filter((text) => text !== "");
  if (texts.length > SIGNATURES_MAX) {
    const count = `${texts.length} signatures, more than the ${SIGNATURES_MAX} that are checked`;
    throw new RelayError("invalid_argument", `webhook-signature: holds ${count}`);
  }
  const signatures = texts.flatMap((text) => {
    const bytes = text.startsWith("v1,") ? bytesOfBase64(text.slice("v1,".length)) : undefined;
    return bytes === undefined ? [] : [bytes];
  });
  if (signatures.length > 0) return signatures;
  throw new RelayError("invalid_argument", `webhook-signature: expected v1,<base64>, got ${quote(header)}`);
}

function secretsOf({ secret, secrets }: WebhookVerification): readonly string[] {
  const all = [...(secret === undefined ? [] : [secret]), ...(secrets ?? [])];
  if (all.length > 0) return all;
  throw new RelayError(
    "invalid_argument",
    "secret: is missing; give the one the relay showed for this endpoint",
  );
}

/** Checks all, each in constant time, so that the duration reveals nothing. */
async function isSignedByOne(
  secrets: readonly string[],
  signatures: readonly Uint8Array<ArrayBuffer>[],
  signed: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const keys = await Promise.all(secrets.map((secret) => importSecret(secret, "verify")));
  const checks = keys.flatMap((key) =>
    signatures.map((signature) => crypto.subtle.verify("HMAC", key, signature, signed)),
  );
  return (await Promise.all(checks)).includes(true);
}

function assertFresh(
  timestamp: string,
  { toleranceMs = TOLERANCE_MS, nowMs = Date.now() }: WebhookVerification,
): void {
  if (!/^\d{1,12}$/.test(timestamp)) {
    throw new RelayError(
      "invalid_argument",
      `webhook-timestamp: expected seconds since 1970, got ${quote(timestamp)}`,
    );
  }
  const sentAtMs = Number(timestamp) * 1_000;
  if (Math.abs(nowMs - sentAtMs) <= toleranceMs) return;
  const [sent, now] = [formatInstant(sentAtMs), formatInstant(nowMs)];
  const far = `is more than ${toleranceMs / 1_000} seconds from ${now}, the time here`;
  throw new RelayError(
    "permission_denied",
    `webhook-timestamp: ${sent} ${far}; it may be a recording, or one of the two clocks is wrong`,
  );
}

/** A signed payload is trusted to have the declared shape. */
function parsePayload(body: Uint8Array): PushPayload {
  try {
    const payload: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    if (typeof payload === "object" && payload !== null) return payload as PushPayload;
  } catch {
    // The signature is right and the body still no JSON.
  }
  throw new RelayError(
    "invalid_argument",
    "body: expected a JSON object; the signature is right, so its sender wrote this",
  );
}

function bytesOf(body: WebhookVerification["body"]): Uint8Array {
  if (typeof body === "string") return new TextEncoder().encode(body);
  return body instanceof ArrayBuffer ? new Uint8Array(body) : body;
}

function join(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(first.length + second.length);
  joined.set(first);
  joined.set(second, first.length);
  return joined;
}
