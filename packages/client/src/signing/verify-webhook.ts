import { formatInstant, type PushPayload, quote, RelayError } from "@a2a-relay/protocol";
import { bytesOfBase64, importSecret } from "./secret.ts";

export interface WebhookVerification {
  /** Those of the request: a `Headers`, or an object such as Node's `request.headers`. */
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The body byte for byte as it came. One that was parsed and written anew has another signature. */
  readonly body: string | Uint8Array | ArrayBuffer;
  /** The endpoint's secret, `whsec_…`. */
  readonly secret?: string | undefined;
  /** All that may sign, where a secret is being replaced. */
  readonly secrets?: readonly string[] | undefined;
  /** How far its time may be from now, in milliseconds: an old one may be a recording. Default five minutes. */
  readonly toleranceMs?: number | undefined;
  /** Now, in epoch milliseconds. */
  readonly nowMs?: number | undefined;
}

const TOLERANCE_MS = 5 * 60_000;
/** A replaced secret makes two; more than a few is somebody who makes us calculate. */
const SIGNATURES_MAX = 10;

/**
 * Makes sure that a webhook comes from the relay and is fresh, by the rules of Standard Webhooks, and reads it.
 * `permission_denied` when it is not to be trusted, `invalid_argument` when it is no signed webhook at all.
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

/** Names of headers come in any case. One that came twice is not believed. */
function valueIn(headers: Readonly<Record<string, unknown>>, name: string): unknown {
  const values = Object.entries(headers).flatMap(([key, value]) => (key.toLowerCase() === name ? value : []));
  return values.length === 1 ? values[0] : undefined;
}

/** Signatures of other versions are for others to check. */
function parseSignatures(header: string): readonly Uint8Array<ArrayBuffer>[] {
  const texts = header.split(" ").filter((text) => text !== "");
  if (texts.length > SIGNATURES_MAX) {
    const count = `${texts.length} signatures, more than the ${SIGNATURES_MAX} that are looked at`;
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

/** All are looked at, and each in constant time, so that the time it takes tells nothing. */
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

/** What the relay signed is trusted to have the shape that the protocol package declares. */
function parsePayload(body: Uint8Array): PushPayload {
  try {
    const payload: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    if (typeof payload === "object" && payload !== null) return payload as PushPayload;
  } catch {
    // It is well signed and no JSON all the same.
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
