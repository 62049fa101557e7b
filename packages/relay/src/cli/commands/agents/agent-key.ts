import { createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { readFile } from "node:fs/promises";
import { proveKey } from "@a2a-relay/client";
import type { RegisterRequest } from "@a2a-relay/protocol";
import { InvalidArgumentError } from "commander";

const PUBLIC_KEY_BYTES = 32;

/** The public half of a private key in a file, and the proof that whoever registers holds it. */
export async function proveKeyOf(
  path: string,
  claim: { readonly agentId: string | undefined; readonly tenant: string | undefined },
): Promise<Pick<RegisterRequest, "pubkey_b58" | "key_proof">> {
  const { agentId, tenant } = claim;
  if (agentId === undefined) {
    throw new InvalidArgumentError("--private-key needs --id too, because the proof names the agent");
  }
  const privateKey = await readPrivateKey(path);
  const spki = createPublicKey(privateKey).export({ format: "der", type: "spki" });
  return proveKey({
    agentId,
    tenant,
    publicKey: spki.subarray(-PUBLIC_KEY_BYTES),
    sign: (bytes) => sign(null, bytes, privateKey),
  });
}

async function readPrivateKey(path: string): Promise<KeyObject> {
  try {
    const key = createPrivateKey(await readFile(path, "utf8"));
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new InvalidArgumentError(`--private-key ${path} cannot be read: ${why}`);
  }
  throw new InvalidArgumentError(
    `--private-key ${path} is no Ed25519 key; make one with: openssl genpkey -algorithm ed25519`,
  );
}
