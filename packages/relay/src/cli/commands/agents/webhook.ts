import { readFile } from "node:fs/promises";
import { signMessage, verifyWebhook } from "@a2a-relay/client";
import { formatInstant, LIMITS, type MessageInput, type PushPayload, RelayError } from "@a2a-relay/protocol";
import { type Command, InvalidArgumentError } from "commander";
import type { CommandLine } from "../../command-line/command-line.ts";
import { webhookHeaders, readStdin } from "../../command-line/input.ts";
import { durationOption } from "../../command-line/options.ts";
import type { CliIo } from "../../terminal/output.ts";
import { factLines } from "../../terminal/text.ts";

interface SecretOptions {
  readonly secret?: string;
  readonly secretFile?: string;
}

interface VerifyOptions extends SecretOptions {
  readonly headers?: string;
  readonly id?: string;
  readonly timestamp?: string;
  readonly signature?: string;
  readonly tolerance: number;
}

interface SignOptions extends SecretOptions {
  readonly keyId: string;
}

export function addWebhook(line: CommandLine): void {
  const webhook = line.command("webhook", "Check what the relay pushes, and sign what is sent to it.", [
    "a2a-relay webhook verify --secret-file push.secret --headers request.headers request.body",
    "a2a-relay webhook sign --key-id key_019e06ea-0000-7000-8000-000000000001 --secret-file key.secret",
  ]);
  addVerify(line, webhook);
  addSign(line, webhook);
}

function addVerify(line: CommandLine, parent: Command): void {
  const command = line
    .command(
      "verify [body-file]",
      "Check the signature of a webhook. Its body comes from the file or from stdin, byte for byte. Asks no relay.",
      [
        "a2a-relay webhook verify --secret-file push.secret --headers request.headers request.body",
        'a2a-relay webhook verify --secret-file push.secret --id "$ID" --timestamp "$TIME" --signature "$SIGNATURE" < body',
      ],
      { parent },
    )
    .option("--headers <file>", "the headers of the request, one a line or as a JSON object")
    .option("--id <id>", "the header webhook-id")
    .option("--timestamp <seconds>", "the header webhook-timestamp")
    .option("--signature <signatures>", "the header webhook-signature")
    .addOption(durationOption("--tolerance <duration>", "how far its time may be from now", "5m"));
  addSecretOptions(command, "the endpoint's secret").action(
    line.run<VerifyOptions, [string | undefined]>(async ({ io, output }, options, file) => {
      const secret = await readSecret(options);
      const head = options.headers === undefined ? undefined : await readText(options.headers, "--headers");
      const headers = webhookHeaders({ ...options, head });
      const body = await readBody(io, file);
      const payload = await verifyWebhook({ headers, body, secret, toleranceMs: options.tolerance });
      const id = headers["webhook-id"] ?? "";
      const sentAt = formatInstant(Number(headers["webhook-timestamp"]) * 1_000);
      await output.show({ ok: true, id, sent_at: sentAt, payload }, () => verifiedLines(id, sentAt, payload));
    }),
  );
}

function addSign(line: CommandLine, parent: Command): void {
  const command = line
    .command(
      "sign [message-file]",
      "Sign a message for POST /api/a2a/inbox: JSON from the file or stdin, printed as JSON. Asks no relay.",
      [
        `echo '{"to":"zhiwei","body":"hello"}' | a2a-relay webhook sign --key-id key_019e06ea-0000-7000-8000-000000000001 --secret-file key.secret`,
      ],
      { parent },
    )
    .requiredOption("--key-id <id>", "the signing key, made with `a2a-relay keys create --sign`");
  addSecretOptions(command, "its secret").action(
    line.run<SignOptions, [string | undefined]>(async ({ io, output }, options, file) => {
      const secret = await readSecret(options);
      const message = parseMessage(await readBody(io, file));
      const signed = await signMessage(message, { keyId: options.keyId, secret });
      await output.showNext(signed, () => [JSON.stringify(signed)]);
    }),
  );
}

function addSecretOptions(command: Command, what: string): Command {
  return command
    .option("--secret-file <file>", `a file that holds ${what}, whsec_…`)
    .option("--secret <secret>", `${what} itself; other users of this machine may see it`);
}

/** Exactly one of the two. A line break at the end of the file is not part of the secret. */
async function readSecret({ secret, secretFile }: SecretOptions): Promise<string> {
  if ((secret === undefined) === (secretFile === undefined)) {
    throw new InvalidArgumentError("give the secret with --secret-file or --secret, and not with both");
  }
  return secret ?? (await readText(secretFile ?? "", "--secret-file")).trim();
}

async function readText(path: string, flag: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new InvalidArgumentError(`${flag} ${path} cannot be read: ${messageOf(cause)}`);
  }
}

async function readBody(io: CliIo, file: string | undefined): Promise<Buffer> {
  if (file === undefined || file === "-") {
    return readStdin(io, LIMITS.batchBodyBytesMax, "more than any webhook has");
  }
  try {
    return await readFile(file);
  } catch (cause) {
    throw new InvalidArgumentError(`${file} cannot be read: ${messageOf(cause)}`);
  }
}

/** Any JSON object can be signed; the relay checks its members. */
function parseMessage(bytes: Buffer): MessageInput {
  try {
    const message: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (typeof message === "object" && message !== null && !Array.isArray(message))
      return message as MessageInput;
  } catch (cause) {
    throw new RelayError("invalid_argument", `the message is not JSON: ${messageOf(cause)}`, { cause });
  }
  throw new RelayError("invalid_argument", 'the message is not a JSON object, such as {"to":…,"body":…}');
}

function verifiedLines(id: string, sentAt: string, payload: PushPayload): readonly string[] {
  return [
    "the signature is right",
    ...factLines([
      ["id", id],
      ["sent", sentAt],
      ["type", typeof payload.type === "string" ? payload.type : undefined],
    ]),
  ];
}

function messageOf(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}
